package topology

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// FuzzProcess sends any bytes through steps of every kind: whatever a record holds, it is processed, passed over or dead-lettered.
func FuzzProcess(f *testing.F) {
	const src = `
streams:
  - name: a
    from: {topic: in, key: int, value: json, on_error: skip}
    steps:
      - to: {topic: t1, key: int, value: json}
      - flat_map: value.items
      - filter: value > 1 or value == "a" or value.x.y == nil
      - max: {store: most}
      - map: {key: 'string(value)', value: '[key, value, timestamp, offset]'}
      - to: {topic: t2, value: json}
      - reduce: {expr: 'len(acc) > 9 ? nil : concat(acc, value)'}
      - to: {topic: t3, value: json}
  - name: b
    from: {topic: other, key: json, value: float, on_error: dead_letter}
    steps:
      - sum: {store: total}
      - map: int(value)
      - to: {topic: t4, key: json, value: json}
      - rekey: 'value % 3'
      - min
      - to: {topic: t5, key: int, value: float}
`
	for _, s := range jsonSamples {
		f.Add([]byte("12345678"), []byte(`{"items": [`+s+`]}`), int64(5))
	}
	f.Add([]byte(nil), []byte(nil), int64(-1))
	f.Add([]byte("1"), []byte("12345678"), int64(0))
	top := parse(f, src)
	f.Fuzz(func(t *testing.T, key, value []byte, ts int64) {
		a := &app{top: top, stores: make(map[string]changedStore)}
		for _, s := range top.Subtopologies {
			var stores []Store
			for range s.Stores {
				stores = append(stores, make(mapStore))
			}
			p, err := s.NewProcessor(stores, a)
			if err != nil {
				t.Fatal(err)
			}
			a.procs = append(a.procs, p)
		}
		for _, topic := range []string{"in", "other", "in", "other"} {
			out, err := a.feed(&kgo.Record{Topic: topic, Key: key, Value: value, Timestamp: time.UnixMilli(ts)})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range out {
				if r.Topic == "" || r.Partition != -1 {
					t.Errorf("record to %q[%d]", r.Topic, r.Partition)
				}
			}
		}
		for _, p := range a.procs {
			if p.Done() != 1 && p.In > 0 {
				t.Errorf("%d records done", p.Done())
			}
		}
	})
}

// FuzzStateful sends any bytes through steps with stores: whatever a record holds, it is processed or passed over.
func FuzzStateful(f *testing.F) {
	const src = `
tables:
  - {name: t, from: {topic: in, key: json, value: json, on_error: skip}, ttl: 1s}
  - {name: g, from: {topic: other, key: json, value: json}, global: true}
  - {name: groups, from: {table: t}, steps: [rekey: value.x, sum: float(value.y), to: {topic: o1, key: json, value: json}]}
  - {name: foreign, from: {table: t}, steps: [join: {table: t2, on: value.x, type: left, value: '[value, other]'}, to: {topic: o2, key: json, value: json}]}
  - {name: t2, from: {topic: other, key: json, value: json, on_error: skip}}
streams:
  - name: a
    from: {topic: in, key: json, value: json, on_error: skip}
    steps:
      - dedupe: {within: 5ms, by: value}
      - join: {stream: c, within: 10ms, grace: 1ms, type: outer, value: '[value, other]'}
      - join: {table: g, key: value, type: left, value: '[value, other]'}
      - collect: {window: {session: 10ms, grace: 3ms}, emit: close}
      - to: {topic: o3, key: json, value: json}
  - {name: c, from: {topic: other, key: json, value: json, on_error: skip}, steps: [map: value]}
  - name: b
    from: {stream: c}
    steps:
      - count_distinct: {window: {sliding: 10ms}}
      - rekey: key
      - top_n: {n: 2, by: value, window: {hopping: 10ms, every: 3ms, late: o4}, emit: commit}
      - to: {topic: o5, key: json, value: json}
`
	for _, s := range jsonSamples {
		f.Add([]byte(`"k"`), []byte(`{"x": `+s+`, "y": 1}`), int64(5))
	}
	f.Add([]byte(nil), []byte(nil), int64(-1))
	f.Add([]byte("1"), []byte("2"), int64(1)<<60)
	top := parse(f, src)
	f.Fuzz(func(t *testing.T, key, value []byte, ts int64) {
		a := newAppOf(t, top)
		for i, topic := range []string{"in", "other", "in", "other", "in"} {
			at := ts/4 + int64(i)*7
			if _, err := a.feed(&kgo.Record{Topic: topic, Key: key, Value: value, Timestamp: time.UnixMilli(at)}); err != nil {
				t.Fatal(err)
			}
			a.commit(t)
		}
	})
}
