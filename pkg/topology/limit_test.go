package topology

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestLimitIsTheProducers holds that what the processor lets pass is taken by a producer with the same bound, and that it does not refuse
// much that the producer would take.
func TestLimitIsTheProducers(t *testing.T) {
	const limit = 4096
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ProducerBatchMaxBytes(limit), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for headers := range 3 {
		var own []kgo.RecordHeader
		for i := range headers {
			own = append(own, kgo.RecordHeader{Key: fmt.Sprintf("header-%d", i), Value: make([]byte, 200)})
		}
		most := 0
		for size := limit - 1000; size <= limit; size++ {
			r := &kgo.Record{Topic: "out", Key: make([]byte, 20), Value: make([]byte, size), Headers: own}
			if sizeOf(r.Key, r.Value, r.Headers) > limit {
				break
			}
			if most = size; size%50 != 0 && sizeOf(r.Key, r.Value, r.Headers) < limit {
				continue
			}
			if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
				t.Fatalf("%d bytes and %d headers: %v", size, headers, err)
			}
		}
		r := &kgo.Record{Topic: "out", Key: make([]byte, 20), Value: make([]byte, most+batchOverhead), Headers: own}
		if err := cl.ProduceSync(context.Background(), r).FirstErr(); err == nil {
			t.Errorf("%d headers: the producer takes %d bytes, the processor only %d", headers, most+batchOverhead, most)
		}
	}
}

// TestOversized makes records too large in each place, under each policy.
func TestOversized(t *testing.T) {
	big, list := strings.Repeat("x", 600), "["+strings.Repeat("1,", 400)+"1]"
	for _, tt := range []struct {
		name, from, steps, value, want string
		headers                        []kgo.RecordHeader
	}{
		{"output", "topic: in", "map: value + value, to: out", big,
			"the record for topic out has 1301 bytes, and kafka.max_message_bytes is 1024", nil},
		{"output of another format", "topic: in", "count, map: '{\"text\": split(\"" + big + "\", \"\")}', to: {topic: out, value: json}", "v",
			"the record for topic out has 2511 bytes, and kafka.max_message_bytes is 1024", nil},
		{"escapes", "topic: in", "reduce: value, to: {topic: out, value: json}", strings.Repeat("\x01", 600),
			"the record for topic out has 3703 bytes, and kafka.max_message_bytes is 1024", nil},
		{"headers behind an aggregate", "topic: in", "count, to: {topic: out, value: int}", "v",
			"the row of store s-count has 1130 bytes, and kafka.max_message_bytes is 1024", []kgo.RecordHeader{{Key: "h", Value: make([]byte, 1002)}}},
		{"repartition topic", "topic: in", "map: value + value, rekey: value, count, to: {topic: out, value: int}", big,
			"the record for topic app-s-count-repartition has 1300 bytes, and kafka.max_message_bytes is 1024", nil},
		{"row of a store", "{topic: in, value: json}", "max: {value: value.a}, to: {topic: out, value: json}", `{"a":"` + big + big + `"}`,
			"the row of store s-max has 1311 bytes, and kafka.max_message_bytes is 1024", nil},
		{"row of a window", "topic: in", "reduce: {expr: acc + value, window: {tumbling: 1m}}, to: out", big,
			"a row of store s-reduce has 1318 bytes, and kafka.max_message_bytes is 1024", nil},
		{"second row", "{topic: in, value: json}", "reduce: '{\"a\": concat(acc.a, value.a)}', count, to: {topic: out, value: int}", `{"a":` + list + `}`,
			"the row of store s-reduce has 1720 bytes, and kafka.max_message_bytes is 1024", nil},
	} {
		for _, policy := range []Policy{Stop, Skip, DeadLetter} {
			from := strings.TrimSuffix(strings.TrimPrefix(tt.from, "{"), "}")
			a := newApp(t, "streams:\n  - {name: s, from: {"+from+", on_error: "+string(policy)+"}, steps: ["+tt.steps+"]}")
			for _, p := range a.procs {
				p.Limits = Limits{Most: 1024}
			}
			rec := &kgo.Record{Topic: "in", Key: []byte("k"), Value: []byte(tt.value), Headers: tt.headers, Timestamp: time.UnixMilli(1)}
			if strings.Contains(tt.steps, "acc") {
				if _, err := a.feed(rec); err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
			}
			before := snapshot(a)
			out, err := a.feed(rec)
			if after := snapshot(a); after != before {
				t.Errorf("%s under %s: stores were %s and are %s", tt.name, policy, before, after)
			}
			var bad *RecordError
			switch policy {
			case Stop:
				if !errors.As(err, &bad) || bad.Err.Error() != tt.want || len(out) > 0 {
					t.Errorf("%s: got %v, %v; want %s", tt.name, out, err, tt.want)
				}
			case Skip:
				if err != nil || len(out) > 0 || a.procs[0].Skipped != 1 {
					t.Errorf("%s under %s: got %v, %v, %+v", tt.name, policy, out, err, a.procs[0].Counters)
				}
			case DeadLetter:
				if err != nil || len(out) != 1 || out[0].Topic != "app-dead-letter" {
					t.Errorf("%s under %s: got %v, %v", tt.name, policy, out, err)
				} else if size := sizeOf(out[0].Key, out[0].Value, out[0].Headers); size > 1024 {
					t.Errorf("%s: a dead letter of %d bytes", tt.name, size)
				}
			}
		}
	}
}

// TestLimitOfTopic names the topic that takes less than others.
func TestLimitOfTopic(t *testing.T) {
	for topic, want := range map[string]string{
		"out":                 "the record for topic out has 1101 bytes, and topic out takes 1024 (max.message.bytes)",
		"app-s-max-changelog": "the row of store s-max has 1109 bytes, and topic app-s-max-changelog takes 1024 (max.message.bytes)",
	} {
		a := newApp(t, "streams:\n  - {name: s, from: in, steps: [max, to: out]}")
		a.procs[0].Limits = Limits{Most: 2048, Topics: map[string]int{topic: 1024}}
		_, err := a.feed(&kgo.Record{Topic: "in", Key: []byte("k"), Value: make([]byte, 1000)})
		var bad *RecordError
		if !errors.As(err, &bad) || bad.Err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLimitOfOutput takes back what was done for an output that its topic alone does not take.
func TestLimitOfOutput(t *testing.T) {
	a := newApp(t, "streams:\n  - {name: s, from: {topic: in, on_error: skip}, steps: [count, to: {topic: out, value: int}]}")
	a.procs[0].Limits = Limits{Most: 4096, Topics: map[string]int{"out": 1024}}
	for i, size := range []int{10, 1500, 10} {
		rec := &kgo.Record{Topic: "in", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "h", Value: make([]byte, size)}}}
		if out, err := a.feed(rec); err != nil || len(out) != 1-i%2 {
			t.Fatalf("record %d: %v, %v", i, out, err)
		}
	}
	if text := a.printStore("s-count"); !strings.Contains(text, "'k': i:2 ") {
		t.Errorf("the store holds %s", text)
	}
}

// snapshot is what all stores hold.
func snapshot(a *app) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(a.stores)) {
		text += name + ": " + a.printStore(name)
	}
	return text
}

// TestShortDeadLetter leaves out of a dead letter what is too large.
func TestShortDeadLetter(t *testing.T) {
	for _, tt := range []struct {
		key, value, header int
		want               string // header streamworker.left_out, one for each
	}{
		{10, 10, 10, ""},
		{10, 2000, 10, "value of 2000 bytes"},
		{2000, 10, 10, "key of 2000 bytes"},
		{1200, 2000, 10, "value of 2000 bytes, key of 1200 bytes"},
		{10, 10, 2000, "headers of 2011 bytes"},
		{1100, 1200, 2000, "headers of 2011 bytes, value of 1200 bytes, key of 1100 bytes"},
	} {
		a := newApp(t, "streams:\n  - {name: s, from: {topic: in, on_error: dead_letter}, steps: [filter: int(value) > 0, to: out]}")
		a.procs[0].Limits = Limits{Most: 5000, Topics: map[string]int{"app-dead-letter": 1024}}
		rec := &kgo.Record{Topic: "in", Key: []byte(strings.Repeat("k", tt.key)), Value: []byte(strings.Repeat("v", tt.value)),
			Headers: []kgo.RecordHeader{{Key: "h", Value: make([]byte, tt.header)}}}
		out, err := a.feed(rec)
		if err != nil || len(out) != 1 {
			t.Fatalf("%+v: got %v, %v", tt, out, err)
		}
		var left, names []string
		for _, h := range out[0].Headers {
			if h.Key == HeaderLeftOut {
				left = append(left, string(h.Value))
			}
			names = append(names, h.Key)
		}
		if got := strings.Join(left, ", "); got != tt.want {
			t.Errorf("%+v: left out %s", tt, got)
		}
		for _, name := range []string{HeaderError, HeaderTopic, HeaderPartition, HeaderOffset} {
			if !strings.Contains(strings.Join(names, " "), name) {
				t.Errorf("%+v: header %s is missing in %v", tt, name, names)
			}
		}
		if len(rec.Headers) != 1 || len(rec.Value) != tt.value {
			t.Errorf("%+v: the record itself was changed", tt)
		}
	}
}
