package instance

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/topology"
)

//go:embed testdata/operators.yaml
var operatorsFile string

// Times of the generated input, in ms: records of a round are within roundSpan, which is less than a join's grace, so that it does
// not matter in which order its two topics are read; rounds are further apart than anything remembers.
const (
	roundSpan = 90
	roundStep = 1000
)

// round generates the input of one round: first what changes tables, then the rest.
func (w *twins) round(n int) (tables, rest []*kgo.Record) {
	at := int64(roundStep * (n + 1))
	record := func(topic, key, value string, ts int64) *kgo.Record {
		r := &kgo.Record{Topic: topic, Key: []byte(key), Timestamp: time.UnixMilli(ts)}
		if key == "" {
			r.Key = nil
		}
		if value != "" {
			r.Value = []byte(value)
		}
		return r
	}
	pick := func(from ...string) string { return from[w.rnd.IntN(len(from))] }
	key := func() string { return "k" + strconv.Itoa(w.rnd.IntN(8)) }
	within := func() int64 { return at + w.rnd.Int64N(roundSpan) }
	text := func() string { return fmt.Sprintf("%s%d", pick("x", "y", "z"), w.rnd.IntN(1000)) }
	for range 20 {
		tables = append(tables, record("in-rows", key(), pick(text(), text(), ""), within()))
		tables = append(tables, record("in-others", key(), pick(text(), text(), ""), within()))
		order := fmt.Sprintf(`{"n": %d, "who": %q}`, w.rnd.IntN(100), key())
		tables = append(tables, record("in-orders", "o"+strconv.Itoa(w.rnd.IntN(20)), pick(order, order, order, ""), within()))
	}
	// No table is empty in the end, whatever was drawn.
	tables = append(tables, record("in-rows", "k0", "z0", at+roundSpan), record("in-others", "k0", text(), at+roundSpan))
	for i := range int64(150) {
		ts := at + i*roundSpan/150 - w.rnd.Int64N(12) // in order of time but for a little
		switch w.rnd.IntN(20) {
		case 0:
			ts -= w.rnd.Int64N(60) // late for some windows
		case 1:
			ts = max(0, at-roundStep+w.rnd.Int64N(roundSpan)) // late for all
		}
		value := fmt.Sprintf(`{"n": %d, "u": %q}`, w.rnd.IntN(1000), pick("u", "v", "w", "x"))
		rest = append(rest, record("in-events", pick(key(), key(), key(), key(), key(), key(), key(), key(), key(), ""), pick(value, value, value, value, value, value, value, "", `{"n`), ts))
		if i%3 == 0 {
			rest = append(rest, record("in-left", pick(key(), key(), key(), key(), ""), pick("l"+text(), "l"+text(), "l"+text(), ""), within()))
			rest = append(rest, record("in-right", pick(key(), key(), key(), key(), ""), pick("r"+text(), "r"+text(), "r"+text(), ""), within()))
		}
	}
	return tables, rest
}

// closing is a record for each partition of each topic that closes all windows.
func (w *twins) closing(n int) (out []*kgo.Record) {
	for _, topic := range []string{"in-events", "in-left", "in-right"} {
		for i := range 40 { // some for each partition, so that all rows that are over are deleted
			value := "end"
			if topic == "in-events" {
				value = `{"n": 1, "u": "u"}`
			}
			out = append(out, &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "end-%d", i), Value: []byte(value), Timestamp: time.UnixMilli(int64(roundStep * (n + 1)))})
		}
	}
	return out
}

// leave lets an instance leave, and starts it again.
func (w *twins) leave(name string, meanwhile func()) {
	w.t.Helper()
	w.await(name+" runs", w.workers[name].Ready)
	if err := w.workers[name].Leave(context.Background(), leave.Default, "test"); err != nil {
		w.t.Fatal(err)
	}
	meanwhile()
	if err := w.end(w.workers[name]); !errors.Is(err, leave.ErrDrained) {
		w.t.Fatalf("%s ended with %v, want drained", name, err)
	}
	w.run(name)
}

// TestOperatorsKeepTheirResults lets tasks with operators of all kinds move, and instances crash, while windows are open and records
// wait for counterparts. Results and stores are those of an instance that nothing happens to.
func TestOperatorsKeepTheirResults(t *testing.T) { onTwins(t, testOperators) }

// onTwins runs a test on a fake cluster and, if STREAMWORKER_TEST_BROKERS names one, on a real Kafka.
func onTwins(t *testing.T, test func(t *testing.T, seed uint64, brokers []string)) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("STREAMWORKER_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("STREAMWORKER_TEST_SEED=%d", seed)
	t.Run("kfake", func(t *testing.T) { test(t, seed, nil) })
	if addr := os.Getenv("STREAMWORKER_TEST_BROKERS"); addr != "" {
		t.Run("kafka", func(t *testing.T) { test(t, seed, []string{addr}) })
	}
}

func testOperators(t *testing.T, seed uint64, brokers []string) {
	w := newTwins(t, operatorsFile, nil, seed, brokers)
	for i := range 8 {
		w.send([]*kgo.Record{{Topic: "in-rates", Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "rate-%d", i)}})
	}
	w.goThroughAll()
}

// goThroughAll lets everything happen, and compares what comes of it.
func (w *twins) goThroughAll() {
	w.t.Helper()
	w.calm.start("calm")
	w.run("a")
	w.run("b")
	events := []func(){
		func() { w.leave("b", func() {}) },
		func() { w.crash("a", false); w.run("a") },
		func() { w.crash("b", true); w.run("b") },
		func() {
			w.workers["a"].Stop(config.Keep)
			_ = w.end(w.workers["a"])
			w.run("a")
		},
		func() {
			for _, name := range []string{"a", "b"} {
				if w.cluster == nil {
					break // a real Kafka does not do so when told to
				}
				w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, TxnID: transactionalID(w.app, name), Err: kerr.InvalidTxnState})
				w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, TxnID: transactionalID(w.app, name), Err: kerr.InvalidTxnState})
			}
		},
		func() { w.leave("b", func() { w.crash("a", true); w.run("a") }) },
		func() { w.crash("a", false); w.crash("b", false); w.run("a"); w.run("b") },
	}
	for n, happens := range events {
		tables, rest := w.round(n)
		w.send(tables)
		w.awaitDone("in-rows")
		w.send(rest[:len(rest)/2])
		happens()
		w.send(rest[len(rest)/2:])
		w.awaitDone("in-events", "in-left", "in-right")
	}
	for n := range 2 { // what has changed since a commit may stay until the next one
		w.send(w.closing(len(events) + n))
		w.awaitQuiet()
	}
	w.compareResults()
	w.compareStores()
}

// compareResults compares all that was written. In the topics of joins the order depends on how their inputs mix, and in some only
// the last value of each key is the same however commits and tasks mix.
func (w *twins) compareResults() {
	w.t.Helper()
	for _, topic := range w.parse(w.bench).topics {
		name := strings.TrimPrefix(topic, w.app+"-")
		got, want := w.committed(topic), w.committed(w.calm.app+"-"+name)
		if len(want) == 0 {
			w.t.Errorf("%s: no results", name)
		}
		lines := func(records []*kgo.Record, ordered bool) map[string]string {
			out := map[string]string{}
			place := 0
			for _, r := range records {
				at := fmt.Sprintf("%d", r.Partition)
				switch {
				case r.Key == nil:
					at = "any" // partition
				case ordered:
					at = fmt.Sprintf("%d, %d.", r.Partition, place)
					place++
				}
				out[fmt.Sprintf("%s %x %s %d", at, r.Key, r.Value, r.Timestamp.UnixMilli())] += "+"
			}
			return out
		}
		var diff string
		switch {
		case strings.HasPrefix(name, "last-"):
			diff = different(lastOf(got), lastOf(want))
		case strings.HasPrefix(name, "set-"):
			diff = different(lines(got, false), lines(want, false))
		default:
			diff = different(lines(got, true), lines(want, true))
		}
		if diff != "" {
			w.t.Errorf("%s: %d results, want %d\n  %s", name, len(got), len(want), diff)
		}
	}
}

// lastOf is the last value of each key.
func lastOf(records []*kgo.Record) map[string]string {
	out := map[string]string{}
	for _, r := range records {
		out[fmt.Sprintf("%d %x", r.Partition, r.Key)] = string(r.Value)
	}
	return out
}

// mixed are stores with rows whose timestamps depend on how several inputs mix, or on when a timer was called.
var mixed = []string{"foreign-rows", "foreign-left-rows", "by-who", "weighed", "merged", "rekeyed", "fi-index", "fl-index", "greetings"}

// compareStores compares what instances hold, what the changelogs have, and what an instance holds that has only these.
func (w *twins) compareStores() {
	w.t.Helper()
	fresh := func() {
		for _, name := range []string{"a", "b"} {
			w.workers[name].Stop(config.Release)
			_ = w.end(w.workers[name])
			delete(w.workers, name)
		}
		w.run("c")
		w.await("c runs everything", func() bool {
			return w.workers["c"].Ready() && len(w.workers["c"].Status().Active) == twinPartitions*len(w.topology.Subtopologies)
		})
	}
	for _, again := range []func(){func() {}, fresh} {
		again()
		for _, s := range w.topology.Subtopologies {
			for _, store := range s.Stores {
				got, logged := w.held(s.ID, store.Name), w.changelog(store.Changelog)
				want := w.calm.changelog(strings.Replace(store.Changelog, w.app, w.calm.app, 1))
				if slices.Contains(mixed, store.Name) {
					for _, rows := range []map[string]string{got, logged, want} {
						for k, v := range rows {
							rows[k] = v[16:]
						}
					}
				}
				if diff := different(got, logged); diff != "" {
					w.t.Errorf("store %s, against its changelog:\n  %s", store.Name, diff)
				}
				if diff := different(logged, want); diff != "" {
					w.t.Errorf("changelog of %s, against that of the undisturbed instance:\n  %s", store.Name, diff)
				}
				if rows := remaining(&store, got); len(rows) > 0 {
					w.t.Errorf("store %s still has rows whose time is over: %q", store.Name, rows)
				}
				if len(want) == 0 {
					w.t.Errorf("store %s is empty", store.Name)
				}
			}
		}
	}
}

// remaining are the rows of a store with windows, or of something else that ends, that are not of the records which have closed all.
func remaining(store *topology.StoreSpec, rows map[string]string) (out []string) {
	if store.Window == nil && store.Layout == topology.Rows || store.Layout == topology.Index {
		return nil
	}
	for place := range rows {
		var partition int
		var row []byte
		if _, err := fmt.Sscanf(place, "%d %x", &partition, &row); err != nil {
			return []string{err.Error()}
		}
		if key, _, ok := store.RowKey(row); ok && !strings.Contains(string(key), "end-") {
			out = append(out, string(key))
		}
	}
	return out
}

// different describes how two maps differ, "" if they do not.
func different(got, want map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[k]; v != want[k] {
			out = append(out, fmt.Sprintf("%s: %q (there: %v), want %q", k, v, ok, want[k]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			out = append(out, fmt.Sprintf("%s: %q, want none", k, got[k]))
		}
	}
	if n := len(out); n > 10 {
		out = append(out[:10], fmt.Sprintf("and %d more", n-10))
	}
	return strings.Join(out, "\n  ")
}
