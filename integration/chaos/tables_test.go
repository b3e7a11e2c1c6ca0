//go:build integration && linux

package chaos

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/state"
)

// entry is a record of a topic that is a table: the count of a key.
type entry struct {
	partition int32
	offset    int64
	key       string
	count     int64
}

// read returns all of a topic as a reader of committed data sees it, each partition in order of offset. stamped: the
// values are those of a changelog.
func (w *world) read(topic string, stamped bool) []entry {
	w.t.Helper()
	var ends kadm.ListedOffsets
	w.until("no transaction is open on "+topic, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stable, err := w.admin.ListCommittedOffsets(ctx, topic)
		if err != nil {
			return false
		}
		ends, err = w.admin.ListEndOffsets(ctx, topic)
		same := err == nil && stable.Error() == nil && ends.Error() == nil
		ends.Each(func(end kadm.ListedOffset) {
			at, ok := stable.Lookup(topic, end.Partition)
			same = same && ok && at.Offset == end.Offset
		})
		return same
	})
	left := map[int32]int64{} // ends not reached
	from := map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		if end.Offset > 0 {
			left[end.Partition], from[end.Partition] = end.Offset, kgo.NewOffset().AtStart()
		}
	})
	// Control records show that the end is reached where nothing else stands there.
	client := w.cluster.Client(w.t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	var all []entry
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			w.t.Fatalf("reading %s: %v: the ends of partitions %v are not reached", topic, err, slices.Sorted(maps.Keys(left)))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset >= left[r.Partition]-1 {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				return
			}
			value := r.Value
			if stamped && len(value) > 8 {
				value = value[8:]
			}
			if len(value) != 8 {
				w.t.Errorf("%s partition %d offset %d: the value of %s is %q", topic, r.Partition, r.Offset, r.Key, r.Value)
				return
			}
			all = append(all, entry{r.Partition, r.Offset, string(r.Key), int64(binary.BigEndian.Uint64(value))})
		})
	}
	return all
}

// table is the last count of each key.
func table(entries []entry) map[string]int64 {
	t := map[string]int64{}
	for _, e := range entries {
		t[e.key] = e.count
	}
	return t
}

// sequence counts the output records that do not tell exactly one more than the one before of their key.
func sequence(entries []entry) (repeated, skipped int, example string) {
	last := map[string]int64{}
	for _, e := range entries {
		before := last[e.key]
		switch {
		case e.count <= before:
			repeated++
		case e.count > before+1:
			skipped++
		}
		if e.count != before+1 {
			example = fmt.Sprintf("%s partition %d offset %d: %d after %d", e.key, e.partition, e.offset, e.count, before)
		}
		last[e.key] = e.count
	}
	return repeated, skipped, example
}

// compare fails the test unless a table has exactly the counts wanted, or, with more, at least those.
func compare(t testing.TB, what string, have, want map[string]int64, more bool) (doubled int64) {
	t.Helper()
	var lost, keys int64
	example := ""
	for key, n := range want {
		d := have[key] - n
		if d != 0 {
			keys++
			example = fmt.Sprintf("%s is %d instead of %d", key, have[key], n)
		}
		lost, doubled = lost+max(0, -d), doubled+max(0, d)
	}
	for key, n := range have {
		if _, sent := want[key]; !sent {
			t.Errorf("%s: %s is %d and was never sent", what, key, n)
		}
	}
	if lost > 0 || doubled > 0 && !more {
		t.Errorf("%s: %d lost, %d doubled, of %d keys; e.g. %s", what, lost, doubled, keys, example)
	}
	return doubled
}

// stores compares what every instance has on disk, brought to the changelog's end, with the changelog itself. It
// returns how many stores hold all of it already.
func (w *world) stores(changelog string, entries []entry) (complete int) {
	w.t.Helper()
	topics, err := w.admin.ListTopics(w.t.Context(), changelog)
	if err != nil {
		w.t.Fatal(err)
	}
	spec := state.StoreSpec{Name: "counts", Changelog: changelog, TopicID: topics[changelog].ID, Retention: 24 * time.Hour}
	want := map[int32]map[string]int64{}
	for _, e := range entries {
		if want[e.partition] == nil {
			want[e.partition] = map[string]int64{}
		}
		want[e.partition][e.key] = e.count
	}
	for _, id := range w.ids {
		engine, err := state.NewEngine(state.Config{Dir: w.members[id].dir})
		if err != nil {
			w.t.Errorf("the state of %s: %v", id, err)
			continue
		}
		for _, local := range engine.Local() {
			_, text, _ := strings.Cut(local.Task, "_")
			p, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				w.t.Fatalf("task %q has no partition", local.Task)
			}
			have, position := w.store(engine, local.Task, spec)
			whole := true
			for _, e := range entries {
				if e.partition == int32(p) && e.offset >= position {
					have[e.key] = e.count
					whole = false
				}
			}
			if whole {
				complete++
			}
			compare(w.t, fmt.Sprintf("the store of task %s on %s at position %d, and the changelog from there", local.Task, id, position),
				have, want[int32(p)], false)
		}
		if err := engine.Close(); err != nil {
			w.t.Error(err)
		}
	}
	return complete
}

// store reads one store on disk, and how much of the changelog it holds.
func (w *world) store(engine *state.Engine, task string, spec state.StoreSpec) (map[string]int64, int64) {
	w.t.Helper()
	db, err := engine.Open(task, []state.StoreSpec{spec})
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	have := map[string]int64{}
	it := db.Store(spec.Name).Range(nil, nil)
	defer it.Close()
	for it.Next() {
		if len(it.Value()) != 16 {
			w.t.Fatalf("task %s: the stored value of %s is %q", task, it.Key(), it.Value())
		}
		have[string(it.Key())] = int64(binary.BigEndian.Uint64(it.Value()[8:]))
	}
	if err := it.Err(); err != nil {
		w.t.Fatal(err)
	}
	return have, db.Checkpoint()[0]
}
