package topology

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What a record takes in a batch of its own in addition to its key, its value and its headers, at most: the batch's header has 61 bytes,
// the record's lengths, attributes and deltas have 32, and those of one of its headers have 10. The rest is for how clients count.
const (
	batchOverhead  = 100
	headerOverhead = 10
)

// sizeOf is what a record takes in a batch of its own, before compression.
func sizeOf(key, value []byte, headers []kgo.RecordHeader) int {
	n := batchOverhead + len(key) + len(value)
	for _, h := range headers {
		n += headerOverhead + len(h.Key) + len(h.Value)
	}
	return n
}

// Limits are what a producer takes of a record alone in a batch, in bytes before compression.
type Limits struct {
	Most   int            // 0: any size
	Topics map[string]int // of topics that take less
}

// Of is the limit for a topic; 0: none.
func (l Limits) Of(topic string) int {
	if most, ok := l.Topics[topic]; ok {
		return most
	}
	return l.Most
}

// oversized returns why something of this size cannot be written to a topic; nil: it can.
func (l *Limits) oversized(size int, topic, what, of string) error {
	most := l.Most
	if len(l.Topics) > 0 {
		most = l.Of(topic)
	}
	if most == 0 || size <= most {
		return nil
	}
	return l.refused(size, most, topic, what, of)
}

func (l *Limits) refused(size, most int, topic, what, of string) error {
	if most < l.Most {
		return fmt.Errorf("%s %s has %d bytes, and topic %s takes %d (max.message.bytes)", what, of, size, topic, most)
	}
	return fmt.Errorf("%s %s has %d bytes, and kafka.max_message_bytes is %d", what, of, size, most)
}

// shorten leaves parts of a dead letter out, in order of their size, until it can be written. Its headers say so, and where the
// record is.
func (l Limits) shorten(r *kgo.Record, own int) {
	for most := l.Of(r.Topic); most != 0 && sizeOf(r.Key, r.Value, r.Headers) > most; {
		headers := 0
		for _, h := range r.Headers[:own] {
			headers += headerOverhead + len(h.Key) + len(h.Value)
		}
		left := ""
		switch {
		case len(r.Value) > 0 && len(r.Value) >= max(len(r.Key), headers):
			left = "value of " + strconv.Itoa(len(r.Value)) + " bytes"
			r.Value = nil
		case len(r.Key) > 0 && len(r.Key) >= headers:
			left = "key of " + strconv.Itoa(len(r.Key)) + " bytes"
			r.Key = nil
		case own > 0:
			left = "headers of " + strconv.Itoa(headers) + " bytes"
			r.Headers, own = append([]kgo.RecordHeader(nil), r.Headers[own:]...), 0
		default:
			return
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: HeaderLeftOut, Value: []byte(left)})
	}
}
