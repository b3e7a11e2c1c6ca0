package tasks

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const globalStreams = `
tables:
  - {name: names, from: {topic: names, value: int}, global: true}
streams:
  - name: s
    from: {topic: in}
    steps:
      - join: {table: names, key: value, type: left, value: 'int(other ?? -1)'}
      - to: {topic: out, value: int}
`

// Tasks that look into a global table wait until it is there, whole, and then see what changes.
func TestGlobalTable(t *testing.T) {
	r := newRig(t, globalStreams, 3)
	produce := func(topic string, partition int32, key, value []byte) {
		t.Helper()
		rec := &kgo.Record{Topic: topic, Partition: partition, Key: key, Value: value, Timestamp: time.UnixMilli(1)}
		if err := r.client.ProduceSync(context.Background(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	number := func(n int) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, byte(n)} }
	for i := range 30 {
		produce("names", int32(i%3), fmt.Append(nil, "n", i), number(i))
	}
	want := map[string]int64{}
	for i := range 30 {
		produce("in", 0, fmt.Append(nil, "k", i), fmt.Append(nil, "n", i))
		want[fmt.Sprint("k", i)] = int64(i)
	}
	r.start()
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 30)
	produce("names", 1, []byte("n1"), number(100))
	produce("names", 2, []byte("n2"), nil)
	r.await("the changes are there", func() bool {
		table := r.m.env.globals.tables["names"]
		gone, _ := table.Get([]byte("n2"))
		now, _ := table.Get([]byte("n1"))
		return gone == nil && string(now) == string(number(100))
	})
	produce("in", 0, []byte("k1"), []byte("n1"))
	produce("in", 0, []byte("k2"), []byte("n2"))
	want["k1"], want["k2"] = 100, -1
	r.awaitCommitted(0, 32)
	if got, _ := r.counts("out"); !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Rights to read a global table may be granted late: the tasks that wait for it go on then. However often they look at it meanwhile,
// nothing is kept of that.
func TestGlobalTableThatCannotBeRead(t *testing.T) {
	r := newRig(t, globalStreams, 1)
	fault := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "names", Err: kerr.TopicAuthorizationFailed, Count: -1})
	r.start()
	r.plan(1, own(id(0)))
	r.awaitMode(id(0), running)
	r.send(0, 10, 2)
	r.await("the task looks at it again and again", func() bool {
		var looks int
		r.inside(func() {
			for range 10 {
				r.m.slots[id(0)].task.box.signal()
			}
			g := r.m.env.globals
			g.mu.Lock()
			defer g.mu.Unlock()
			looks = len(g.waiting)
		})
		if looks > 1 {
			t.Fatalf("one task waits %d times", looks)
		}
		return fault.Hits() > 1
	})
	fault.Remove()
	r.awaitCommitted(0, 10)
}

// A bad record of a global table is told of, and whoever looks for its row has a bad record.
func TestBadGlobalRecord(t *testing.T) {
	r := newRig(t, `
tables:
  - {name: names, from: {topic: names, value: {format: csv, columns: {first: string, age: int}}}, global: true}
streams:
  - name: s
    from: {topic: in, on_error: skip}
    steps:
      - join: {table: names, key: value, value: int(other.age)}
      - to: {topic: out, value: int}
`, 1)
	for _, rec := range []*kgo.Record{
		{Topic: "names", Key: []byte("a"), Value: []byte("Ann,30")},
		{Topic: "names", Key: []byte("b"), Value: []byte("Bob,old")},
		{Topic: "in", Key: []byte("k1"), Value: []byte("a")},
		{Topic: "in", Key: []byte("k2"), Value: []byte("b")},
	} {
		if err := r.client.ProduceSync(context.Background(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	r.start()
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 2)
	if got, _ := r.counts("out"); !maps.Equal(got, map[string]int64{"k1": 30}) || r.m.Totals().Skipped != 1 {
		t.Errorf("%v, %d skipped", got, r.m.Totals().Skipped)
	}
	r.await("the status tells of it", func() bool { return len(r.m.Status().Globals) == 1 })
	if g := r.m.Status().Globals[0]; g.Table != "names" || g.Records != 1 || !strings.Contains(g.Err.Error(), "record at names[0] offset 1: ") || !strings.Contains(g.Err.Error(), "age") {
		t.Errorf("%+v", g)
	}
}
