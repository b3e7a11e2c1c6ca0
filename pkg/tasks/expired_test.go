package tasks

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// lapse is a membership whose lease may expire.
type lapse struct{ expired bool }

func (l *lapse) ForceRound()            {}
func (l *lapse) Expired(time.Time) bool { return l.expired }

// A process that was paused past its session finds records in its inbox when it goes on. It must leave
// them alone although nobody has told it yet that its tasks are another's.
func TestTaskStandsStillWhenItsLeaseHasExpired(t *testing.T) {
	f := yamlnode.Parse("t.yaml", []byte("- name: s\n  from: {topic: in}\n  steps:\n    - filter: 'false'\n    - to: {topic: out}\n"), nil)
	top := topology.Parse("app", f.Root())
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	group := &lapse{expired: true}
	cfg := &Config{Group: group}
	cfg.ensureDefaults()
	e := &env{cfg: cfg, ctx: context.Background(), cpu: make(chan struct{}, 1), totals: &totals{}}
	task := newTask(assign.TaskID{}, &Subtopology{Subtopology: top.Subtopologies[0], Partitions: 1}, e)
	task.open(func(err error) { t.Fatal(err) })
	if err := task.activate(1, []int64{0}, nil); err != nil {
		t.Fatal(err)
	}
	task.admit(1, nil)
	task.inbox.put(inputBatch{epoch: 1, records: []*kgo.Record{{Topic: "in", Offset: 0}, {Topic: "in", Offset: 1}}}, inboxMaxBytes, func() {})
	if task.processNext() || task.stats.records.Load() != 0 {
		t.Fatal("processed under an expired lease")
	}
	if task.waitsFor(time.Now()) <= 0 {
		t.Fatal("does not look again whether the lease was a false alarm")
	}
	group.expired = false
	if !task.processNext() || task.stats.records.Load() != 2 || task.active.offsets[0] != 2 {
		t.Fatalf("processed %d records under a lease, next offset %d", task.stats.records.Load(), task.active.offsets[0])
	}
}
