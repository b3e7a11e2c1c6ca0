package tasks

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
	"github.com/streamworker/streamworker/pkg/topology"
)

// offsetTable is a table of committed offsets that a test writes.
type offsetTable struct {
	mu    sync.Mutex
	table map[TopicPartition]Offset
	asked int
}

func (o *offsetTable) Commit(_ context.Context, _ handover.Lease, list []Offset) (handover.Outcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range list {
		o.table[l.TopicPartition] = l
	}
	return handover.Acknowledged, nil
}

func (o *offsetTable) Fetch(_ context.Context, parts []TopicPartition) (map[TopicPartition]Offset, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	out := map[TopicPartition]Offset{}
	for _, tp := range parts {
		if off, ok := o.table[tp]; ok {
			out[tp] = off
		} else {
			out[tp] = Offset{TopicPartition: tp, Offset: -1}
		}
	}
	return out, nil
}

func twoSources() *Subtopology {
	return &Subtopology{Subtopology: &topology.Subtopology{Sources: []topology.Source{{Topic: "a"}, {Topic: "b"}}}, Partitions: 8}
}

func TestOpenerWaitsForTheTokenOfExactlyThisRelease(t *testing.T) {
	sub, id := twoSources(), assign.TaskID{Partition: 3}
	parts := sub.sources(id)
	table := &offsetTable{table: map[TopicPartition]Offset{}}
	want := assign.ReleaseID{Generation: 7, Owner: "m-1"}
	commit := func(r *assign.ReleaseID, offsets ...int64) {
		meta := handover.Metadata{Committer: "m-1"}
		if r != nil {
			meta.Token = &handover.Token{Release: *r, Positions: []int64{42}}
		}
		_, _ = table.Commit(context.Background(), handover.Lease{}, offsetsOf(parts[:len(offsets)], offsets, meta))
	}
	found := make(chan committed, 1)
	o := newOpener(table, func(lookup) {}, slog.New(slog.DiscardHandler))
	o.want(lookup{task: id, epoch: 1, sub: sub, token: true, release: want, found: func(c committed) { found <- c }})
	step := func(what string) {
		t.Helper()
		if _, left := o.round(context.Background()); !left || len(found) > 0 {
			t.Fatalf("satisfied by %s", what)
		}
	}
	step("no offsets at all")
	commit(nil, 10, 20)
	step("an ordinary commit")
	commit(&assign.ReleaseID{Generation: 6, Owner: "m-1"}, 10, 20)
	step("the token of an earlier order")
	commit(&assign.ReleaseID{Generation: 7, Owner: "m-2"}, 10, 20)
	step("the token of another owner")
	commit(nil, 10, 20)
	commit(&want, 11)
	step("a token on one of two partitions")
	commit(&want, 11, 22)
	if _, left := o.round(context.Background()); left {
		t.Fatal("not satisfied by the token")
	}
	c := <-found
	if c.offsets[0] != 11 || c.offsets[1] != 22 || c.meta.Token.Positions[0] != 42 {
		t.Fatalf("found %+v", c)
	}
}

func TestOpenerTakesForeignOffsetsAsTheyAre(t *testing.T) {
	sub, id := twoSources(), assign.TaskID{}
	table := &offsetTable{table: map[TopicPartition]Offset{}}
	parts := sub.sources(id)
	table.table[parts[0]] = Offset{TopicPartition: parts[0], Offset: 5, Metadata: "a plain consumer was here"}
	found := make(chan committed, 1)
	o := newOpener(table, func(lookup) {}, slog.New(slog.DiscardHandler))
	o.want(lookup{task: id, epoch: 1, sub: sub, found: func(c committed) { found <- c }})
	o.round(context.Background())
	if c := <-found; c.offsets[0] != 5 || c.offsets[1] != -1 || c.meta.Committer != "" {
		t.Fatalf("found %+v", c)
	}
}

func TestOpenerForgetsAndReplacesWishes(t *testing.T) {
	sub, id := twoSources(), assign.TaskID{}
	table := &offsetTable{table: map[TopicPartition]Offset{}}
	o := newOpener(table, func(lookup) {}, slog.New(slog.DiscardHandler))
	got := ""
	o.want(lookup{task: id, epoch: 1, sub: sub, found: func(committed) { got += "first" }})
	o.want(lookup{task: id, epoch: 2, sub: sub, found: func(committed) { got += "second" }})
	o.round(context.Background())
	if got != "second" {
		t.Fatalf("answered %q, want the second wish only", got)
	}
	o.want(lookup{task: id, epoch: 3, sub: sub, found: func(committed) { got += "third" }})
	o.forget(id)
	o.round(context.Background())
	if got != "second" || table.asked != 1 {
		t.Fatalf("answered %q with %d requests after the wish was taken back", got, table.asked)
	}
}

// The task of a wish was closed and opened anew for the same order while the wish's request was on its way. The
// answer belongs to the task that is gone: the new wish must stay.
func TestOpenerKeepsAWishThatIsNewerThanTheRequest(t *testing.T) {
	sub, id := twoSources(), assign.TaskID{}
	var o *opener
	got := ""
	table := &heldFetch{offsetTable: offsetTable{table: map[TopicPartition]Offset{}}, held: func() {
		o.forget(id)
		o.want(lookup{task: id, epoch: 1, sub: sub, found: func(committed) { got += "new" }})
	}}
	o = newOpener(table, func(lookup) {}, slog.New(slog.DiscardHandler))
	o.want(lookup{task: id, epoch: 1, sub: sub, found: func(committed) { got += "old" }})
	if _, left := o.round(context.Background()); got != "" || !left {
		t.Fatalf("answered %q", got)
	}
	table.held = func() {}
	if o.round(context.Background()); got != "new" {
		t.Fatalf("answered %q, want the new wish only", got)
	}
}

// heldFetch does something while a request is on its way.
type heldFetch struct {
	offsetTable
	held func()
}

func (h *heldFetch) Fetch(ctx context.Context, parts []TopicPartition) (map[TopicPartition]Offset, error) {
	h.held()
	return h.offsetTable.Fetch(ctx, parts)
}

func TestBackoffGrowsToABound(t *testing.T) {
	last := time.Duration(0)
	for n := 1; n < 30; n++ {
		d := backoff(n)
		if d < last || d > retryMost {
			t.Fatalf("after %d failures %s, after one less %s", n, d, last)
		}
		last = d
	}
	if backoff(1) != retryFirst || last != retryMost {
		t.Fatalf("from %s to %s", backoff(1), last)
	}
}
