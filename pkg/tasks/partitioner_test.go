package tasks

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What follows the first bytes of a key does not count where a record says so.
func TestPartitionOfAPartOfTheKey(t *testing.T) {
	p := Partitioner().ForTopic("t")
	seen := map[int]bool{}
	for i := range 50 {
		key := fmt.Append(nil, "key-", i)
		want := p.Partition(&kgo.Record{Key: key, Partition: -1}, 7)
		r := &kgo.Record{Key: append(key[:len(key):len(key)], "12345678"...), Partition: -2 - int32(len(key))}
		if got := p.Partition(r, 7); got != want || !p.RequiresConsistency(r) {
			t.Errorf("%s with a window goes to %d, want %d", key, got, want)
		}
		seen[want] = true
	}
	if len(seen) != 7 {
		t.Errorf("only partitions %v", seen)
	}
}
