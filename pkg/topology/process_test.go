package topology

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/window"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// TestProcess runs scripts:
//
//	topology        streams as YAML; prints the topology
//	process         records, one a line: TOPIC TIMESTAMP KEY VALUE; prints what comes out
//	commit          prints what comes out at a commit of all tasks
//	store NAME      prints what a store holds
//	counters        prints the counters of each subtopology
//
// Keys and values are written null, 'text', i:1, f:1.5, x:00ff, or as JSON.
func TestProcess(t *testing.T) {
	datadriven.Walk(t, "testdata/process", func(t *testing.T, path string) {
		var a *app
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "topology":
				a = newApp(t, d.Input)
				return a.top.String()
			case "process":
				return a.script(d)
			case "commit":
				return a.commit(t)
			case "store":
				return a.printStore(d.CmdArgs[0].Key)
			case "counters":
				var b strings.Builder
				for i, p := range a.procs {
					fmt.Fprintf(&b, "%d: %+v", i, p.Counters)
					if p.Late > 0 {
						fmt.Fprintf(&b, " Late:%d", p.Late)
					}
					b.WriteByte('\n')
				}
				return b.String()
			default:
				t.Fatalf("unknown command %q", d.Cmd)
				return ""
			}
		})
	})
}

// app runs all subtopologies of a topology in memory, repartition topics included.
type app struct {
	top     *Topology
	procs   []*Processor
	stores  map[string]changedStore
	globals map[string]*GlobalTable // by topic
	pending []*kgo.Record           // emitted and not looked at yet
	offset  int64
}

func (a *app) Emit(r *kgo.Record) { a.pending = append(a.pending, r) }

func newApp(t testing.TB, src string) *app {
	t.Helper()
	return newAppOf(t, parse(t, src))
}

func newAppOf(t testing.TB, top *Topology) *app {
	t.Helper()
	a := &app{top: top, stores: make(map[string]changedStore), globals: make(map[string]*GlobalTable)}
	for _, g := range a.top.Globals {
		a.globals[g.Topic] = NewGlobalTable(g)
	}
	for _, s := range a.top.Subtopologies {
		var stores []Store
		for _, spec := range s.Stores {
			a.stores[spec.Name] = newChangedStore()
			stores = append(stores, a.stores[spec.Name])
		}
		var globals []*GlobalTable
		for _, g := range s.Globals {
			globals = append(globals, a.globals[g.Topic])
		}
		p, err := s.NewProcessor(stores, a, globals...)
		if err != nil {
			t.Fatal(err)
		}
		a.procs = append(a.procs, p)
	}
	return a
}

// feed processes a record and what follows from it; it returns all that is written, in order.
func (a *app) feed(rec *kgo.Record) ([]*kgo.Record, error) {
	if err := a.consume(rec); err != nil {
		return nil, err
	}
	return a.drain()
}

// drain processes what was written and is read here; it returns all that is written, in order.
func (a *app) drain() (out []*kgo.Record, err error) {
	for len(a.pending) > 0 {
		r := a.pending[0]
		a.pending = a.pending[1:]
		out = append(out, r)
		if err := a.consume(r); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (a *app) consume(r *kgo.Record) error {
	if g := a.globals[r.Topic]; g != nil {
		_ = g.Put(r.Key, r.Value) // a bad record is passed over
	}
	for i, s := range a.top.Subtopologies {
		for j, source := range s.Sources {
			if source.Topic == r.Topic {
				read := *r
				read.Partition, read.Offset = 0, a.offset
				a.offset++
				if err := a.procs[i].Process(j, []*kgo.Record{&read}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (a *app) script(d *datadriven.TestData) string {
	var b strings.Builder
	for line := range strings.Lines(d.Input) {
		out, err := a.feed(parseRecord(line))
		for _, r := range out {
			b.WriteString(a.printRecord(r))
		}
		if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
		}
	}
	return b.String()
}

// commit cuts off and sends on what waits for it, one subtopology after the other.
func (a *app) commit(t testing.TB) string {
	var b strings.Builder
	for i, s := range a.top.Subtopologies {
		if err := commit(a.procs[i], s, func(store int) changedStore { return a.stores[s.Stores[store].Name] }); err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
		}
		out, err := a.drain()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out {
			b.WriteString(a.printRecord(r))
		}
	}
	return b.String()
}

// commit does with a processor and its stores what a task does at a commit.
func commit(p *Processor, s *Subtopology, stores func(int) changedStore) error {
	for i, spec := range s.Stores {
		if err := p.EmitChanges(spec.Name, stores(i).cut()); err != nil {
			return err
		}
	}
	return nil
}

func parseRecord(line string) *kgo.Record {
	fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
	ts, _ := strconv.ParseInt(fields[1], 10, 64)
	key, value := splitData(fields[2])
	return &kgo.Record{Topic: fields[0], Timestamp: time.UnixMilli(ts), Key: parseData(key), Value: parseData(value)}
}

// splitData cuts "KEY VALUE" where the key ends.
func splitData(s string) (key, value string) {
	end := strings.IndexByte(s, ' ')
	if s[0] == '\'' {
		end = strings.IndexByte(s[1:], '\'') + 2
	}
	return s[:end], strings.TrimSpace(s[end:])
}

func parseData(s string) []byte {
	kind, rest, _ := strings.Cut(s, ":")
	switch {
	case s == "null":
		return nil
	case s[0] == '\'':
		return []byte(s[1 : len(s)-1])
	case kind == "i":
		n, _ := strconv.ParseInt(rest, 10, 64)
		return binary.BigEndian.AppendUint64(nil, uint64(n))
	case kind == "f":
		f, _ := strconv.ParseFloat(rest, 64)
		return binary.BigEndian.AppendUint64(nil, math.Float64bits(f))
	case kind == "x":
		b, _ := hex.DecodeString(rest)
		return b
	default:
		return []byte(s)
	}
}

func printData(b []byte, f Format) string {
	switch {
	case b == nil:
		return "null"
	case f == Int && len(b) == 8:
		return fmt.Sprintf("i:%d", int64(binary.BigEndian.Uint64(b)))
	case f == Float && len(b) == 8:
		return fmt.Sprintf("f:%v", math.Float64frombits(binary.BigEndian.Uint64(b)))
	case f == JSON:
		return string(b)
	case f == String && !strings.ContainsFunc(string(b), unicode.IsControl):
		return "'" + string(b) + "'"
	default:
		return fmt.Sprintf("x:%x", b)
	}
}

func (a *app) printRecord(r *kgo.Record) string {
	key, value, at := String, String, ""
	raw := r.Key
	for _, s := range a.top.Subtopologies {
		for _, sink := range s.Sinks {
			if sink.Topic == r.Topic {
				key, value = sink.Key.Format, sink.Value.Format
				if sink.Window != nil {
					plain, w, _ := sink.Window.ParseKey(r.Key)
					raw, at = plain, fmt.Sprintf("@%d/%d", w.Start, w.End)
				}
			}
		}
	}
	text := fmt.Sprintf("%s %d %s%s %s\n", r.Topic, r.Timestamp.UnixMilli(), printData(raw, key), at, printData(r.Value, value))
	for _, h := range r.Headers {
		text += fmt.Sprintf("  %s: %s\n", h.Key, h.Value)
	}
	return text
}

func (a *app) printStore(name string) string {
	var spec StoreSpec
	for _, s := range a.top.Subtopologies {
		for _, one := range s.Stores {
			if one.Name == name {
				spec = one
			}
		}
	}
	var b strings.Builder
	store := a.stores[name].mapStore
	for _, key := range slices.Sorted(maps.Keys(store)) {
		v, at := store[key], ""
		if clock, ok := window.ParseClock(v); ok && spec.Ordered() && key == string(window.ClockKey) {
			fmt.Fprintf(&b, "clock: %+v\n", clock)
			continue
		}
		plain, w, ok := spec.RowKey([]byte(key))
		if !ok {
			continue
		}
		if spec.Window != nil || spec.Layout == Buffer {
			at = fmt.Sprintf("@%d/%d", w.Start, w.End)
		}
		fmt.Fprintf(&b, "%s%s: %s at %d\n", printData(plain, spec.Key), at, printData(v[stampLen:], spec.Value), int64(binary.BigEndian.Uint64(v)))
	}
	return b.String()
}

// mapStore is a store in memory. It writes over old values where it can, as a real store may.
type mapStore map[string][]byte

func (s mapStore) Get(key []byte) ([]byte, bool, error) { v, ok := s[string(key)]; return v, ok, nil }
func (s mapStore) Delete(key []byte)                    { delete(s, string(key)) }
func (s mapStore) Put(key, value []byte) {
	if old, ok := s[string(key)]; ok && len(old) == len(value) {
		copy(old, value)
		return
	}
	s[string(key)] = append([]byte(nil), value...)
}

// Scan reads a copy in order.
func (s mapStore) Scan(from, to []byte, f func(key, value []byte) bool) error {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if key >= string(from) && (to == nil || key < string(to)) && !f([]byte(key), s[key]) {
			break
		}
	}
	return nil
}

// changedStore knows which keys were written since the last cut, as a real store does.
type changedStore struct {
	mapStore
	changed map[string]bool
}

func newChangedStore() changedStore { return changedStore{make(mapStore), make(map[string]bool)} }

func (s changedStore) Put(key, value []byte) {
	s.changed[string(key)] = true
	s.mapStore.Put(key, value)
}

func (s changedStore) Delete(key []byte) {
	if _, ok := s.mapStore[string(key)]; ok {
		s.changed[string(key)] = true
	}
	s.mapStore.Delete(key)
}

// cut returns the changes in order of the key.
func (s changedStore) cut() iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(s.changed)) {
			delete(s.changed, key)
			if !yield([]byte(key), slices.Clone(s.mapStore[key])) {
				return
			}
		}
	}
}

// parse builds the topology of a file that must be right.
func parse(t testing.TB, src string) *Topology {
	t.Helper()
	f := yamlnode.Parse("test.yaml", []byte(src), nil)
	m := f.Root().Map()
	top := Definition{App: "app", Tables: m.Get("tables"), Streams: m.Get("streams")}.Parse()
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	return top
}

// brokenStore fails to read.
type brokenStore struct{ mapStore }

var errBroken = errors.New("disk on fire")

func (brokenStore) Get([]byte) ([]byte, bool, error) { return nil, false, errBroken }

func TestStoreErrorIsNoRecordError(t *testing.T) {
	top := parse(t, "streams:\n  - {name: s, from: {topic: in, on_error: skip}, steps: [count]}")
	p, err := top.Subtopologies[0].NewProcessor([]Store{brokenStore{}}, new(discard))
	if err != nil {
		t.Fatal(err)
	}
	err = p.Process(0, []*kgo.Record{{Topic: "in", Key: []byte("k"), Value: []byte("v")}})
	var bad *RecordError
	if !errors.Is(err, errBroken) || errors.As(err, &bad) {
		t.Errorf("got %v (%T), want the store's error whatever on_error says", err, err)
	}
}
