package topology

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kgo"
)

const wordCount = `
streams:
  - name: lines
    from: {topic: lines, value: string}
    steps:
      - flat_map: split(lower(value), " ")
      - filter: value != ""
      - rekey: value
      - count: {store: counts}
      - to: {topic: counts, value: int}
`

// twoStreams has a subtopology of two streams, and two behind repartition topics.
const twoStreams = `
streams:
  - name: a
    from: {topic: in, on_error: dead_letter}
    steps: [rekey: value, count, to: {topic: out-a, value: int}]
  - name: b
    from: other
    steps: [count, to: {topic: out-b, value: int}]
  - name: c
    from: {topic: in, on_error: dead_letter}
    steps: [to: copy, map: {key: value}, count, to: {topic: out-b, value: int}]
`

// TestDrawings compares the drawings with files; "-rewrite" writes them anew.
func TestDrawings(t *testing.T) {
	datadriven.Walk(t, "testdata/drawings", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			top := parse(t, d.Input)
			return top.String()
		})
	})
}

func TestSubtopologies(t *testing.T) {
	top := parse(t, twoStreams)
	var got []string
	for i, s := range top.Subtopologies {
		if s.ID != int32(i) || s.Stateful != (len(s.Stores) > 0) {
			t.Errorf("subtopology %d: id %d, stateful %v", i, s.ID, s.Stateful)
		}
		line := strings.Join(s.Topics(), " ") + " ->"
		for _, sink := range s.Sinks {
			line += " " + sink.Topic
		}
		for _, store := range s.Stores {
			line += " [" + store.Changelog + "]"
		}
		got = append(got, line)
	}
	want := []string{
		"in -> app-a-count-repartition copy app-c-count-repartition",
		"app-a-count-repartition -> out-a [app-a-count-changelog]",
		"other -> out-b [app-b-count-changelog]",
		"app-c-count-repartition -> out-b [app-c-count-changelog]",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if in, want := top.Inputs(), []string{"in", "other"}; !reflect.DeepEqual(in, want) {
		t.Errorf("inputs %v, want %v", in, want)
	}
	if out, want := top.Outputs(), []string{"app-dead-letter", "copy", "out-a", "out-b"}; !reflect.DeepEqual(out, want) {
		t.Errorf("outputs %v, want %v", out, want)
	}
	for _, s := range top.Subtopologies[:2] {
		if s.Sources[0].DeadLetterTopic != "app-dead-letter" {
			t.Errorf("subtopology %d: dead letters to %q: behind a repartition topic the source's policy goes on", s.ID, s.Sources[0].DeadLetterTopic)
		}
	}
}

// A stream that is added at the end leaves the numbers of the others alone.
func TestNumbersAreStable(t *testing.T) {
	before := parse(t, twoStreams)
	after := parse(t, twoStreams+"  - {name: d, from: third, steps: [count]}\n  - {name: e, from: in2, steps: [rekey: value, count]}\n")
	for i, s := range before.Subtopologies {
		if !reflect.DeepEqual(s.Topics(), after.Subtopologies[i].Topics()) {
			t.Errorf("subtopology %d was %v and becomes %v", i, s.Topics(), after.Subtopologies[i].Topics())
		}
	}
}

func TestFormats(t *testing.T) {
	top := parse(t, `
streams:
  - name: s
    from: {topic: in, key: int, value: json}
    steps: [rekey: value.name, count, to: {topic: out, value: int}]
`)
	for _, c := range []struct {
		topic      string
		key, value Format
	}{{"in", Int, JSON}, {"unknown", String, String}} {
		if key, value := top.Formats(c.topic); key != (Serde{Format: c.key}) || value != (Serde{Format: c.value}) {
			t.Errorf("topic %s is read as %s and %s, want %s and %s", c.topic, key, value, c.key, c.value)
		}
	}
}

func TestPartitionCounts(t *testing.T) {
	top := parse(t, twoStreams)
	tasks, internal, err := top.PartitionCounts(map[string]int32{"in": 8, "other": 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{8, 8, 3, 8}; !reflect.DeepEqual(tasks, want) {
		t.Errorf("tasks %v, want %v", tasks, want)
	}
	want := map[string]int32{
		"app-a-count-repartition": 8, "app-a-count-changelog": 8, "app-b-count-changelog": 3,
		"app-c-count-repartition": 8, "app-c-count-changelog": 8,
	}
	if !reflect.DeepEqual(internal, want) {
		t.Errorf("internal topics %v, want %v", internal, want)
	}
	if _, _, err := top.PartitionCounts(map[string]int32{"in": 8}); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("got %v, want an error that names the missing topic", err)
	}
	joined := &Topology{Subtopologies: []*Subtopology{{Sources: []Source{{Topic: "x"}, {Topic: "y"}}}}}
	if _, _, err := joined.PartitionCounts(map[string]int32{"x": 2, "y": 3}); err == nil || !strings.Contains(err.Error(), "2 and 3") {
		t.Errorf("got %v, want an error that names both counts", err)
	}
}

// Programs are shared by the processors of a subtopology: tasks run at once.
func TestProcessorsShareNothingTheyWrite(t *testing.T) {
	top := parse(t, `
streams:
  - name: s
    from: {topic: in, value: json}
    steps:
      - flat_map: 'map(value.items, # * value.factor)'
      - map: '{"v": value, "k": key, "at": timestamp}'
      - sum: {value: value.v}
      - to: {topic: out, value: float}
`)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			store := make(mapStore)
			p, err := top.Subtopologies[0].NewProcessor([]Store{store}, new(discard))
			if err != nil {
				t.Error(err)
				return
			}
			for range 200 {
				rec := &kgo.Record{Topic: "in", Key: []byte("k"), Value: fmt.Appendf(nil, `{"factor": %d, "items": [1, 2, 3]}`, g)}
				if err := p.Process(0, []*kgo.Record{rec}); err != nil {
					t.Error(err)
					return
				}
			}
			if got, want := printData(store["k"][stampLen:], Float), fmt.Sprintf("f:%d", 200*6*g); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	wg.Wait()
}

// The chains that matter most allocate per slab, not per record.
func TestAllocations(t *testing.T) {
	const events = `
streams:
  - {name: events, from: {topic: events, value: bytes}, steps: [count: {store: counts}, to: {topic: counts, value: int}]}
`
	for _, test := range []struct {
		name, src string
		sub       int
		most      float64 // allocations per record
	}{
		{"count", events, 0, 0.05},
		{"word count, count", wordCount, 1, 0.05},
		{"word count, split", wordCount, 0, 0.2},
	} {
		s := parse(t, test.src).Subtopologies[test.sub]
		var stores []Store
		for range s.Stores {
			stores = append(stores, rowStore{rows: make(map[string]*[16]byte)})
		}
		p, err := s.NewProcessor(stores, new(discard))
		if err != nil {
			t.Fatal(err)
		}
		recs := make([]*kgo.Record, 1000)
		for i := range recs {
			recs[i] = &kgo.Record{Topic: s.Topics()[0], Key: fmt.Appendf(nil, "k%d", i%10), Value: []byte("a b"), Timestamp: time.UnixMilli(1)}
		}
		per := testing.AllocsPerRun(10, func() {
			if err := p.Process(0, recs); err != nil {
				t.Fatal(err)
			}
		}) / float64(len(recs))
		if per > test.most {
			t.Errorf("%s: %.3f allocations per record, want at most %.3f", test.name, per, test.most)
		}
	}
}

func TestNewProcessorWantsAllStores(t *testing.T) {
	if _, err := parse(t, wordCount).Subtopologies[1].NewProcessor(nil, new(discard)); err == nil {
		t.Error("a processor without its store")
	}
}

// What is emitted stays as it is, whatever is processed later.
func TestEmittedBytesAreNotWrittenTo(t *testing.T) {
	a := newApp(t, `
streams:
  - name: s
    from: {topic: in, value: int}
    steps:
      - min: {store: m}
      - to: {topic: out, value: int}
      - reduce: {store: r, expr: acc}
      - map: '[key, value]'
      - to: {topic: list, value: json}
`)
	var all []*kgo.Record
	var printed []string
	for i := range 300 {
		out, err := a.feed(&kgo.Record{Topic: "in", Key: []byte("k"), Value: parseData(fmt.Sprintf("i:%d", 300-i)), Timestamp: time.UnixMilli(int64(i))})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out {
			all, printed = append(all, r), append(printed, a.printRecord(r))
		}
	}
	if len(all) != 600 {
		t.Fatalf("%d records", len(all))
	}
	for i, r := range all {
		if got := a.printRecord(r); got != printed[i] {
			t.Fatalf("record %d was %q and is %q", i, printed[i], got)
		}
	}
}

// The hash tells instances with other files apart: it is not to change when they run another version of the program.
func TestHashIsKept(t *testing.T) {
	for src, want := range map[string]uint64{wordCount: 0x393fabbb3cad66ff, twoStreams: 0x27f396ada87048e9} {
		if got := parse(t, src).Hash(); got != want {
			t.Errorf("hash %#x, want %#x of\n%s", got, want, src)
		}
	}
	const from = "streams:\n  - {name: a, from: in, steps: [to: out]}\n  - {name: b, from: in2, steps: [to: out2]}\n"
	hashes := map[uint64]string{}
	for _, more := range []string{
		"", "  - {name: c, from: {stream: a}, steps: [to: out3]}\n", "  - {name: c, from: {stream: b}, steps: [to: out3]}\n",
		"  - {name: c, from: {streams: [a, b]}, steps: [to: out3]}\n", "  - {name: c, from: in, steps: [to: out3]}\n",
		"tables:\n  - {name: c, from: {stream: b}, store: x}\n", "tables:\n  - {name: c, from: {stream: a}, store: x}\n",
	} {
		h := parse(t, from+more).Hash()
		if other, there := hashes[h]; there {
			t.Errorf("the hashes with %q and %q are equal", other, more)
		}
		hashes[h] = more
	}
}
