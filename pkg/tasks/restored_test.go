package tasks

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// What is restored with nothing at hand is told from what a standby has kept warm.
func TestRestoredTellsWhetherSomethingWasAtHand(t *testing.T) {
	r := newRig(t, countStreams, 2).start()
	for partition := range int32(2) {
		v := []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}
		rec := &kgo.Record{Topic: "app-counts-changelog", Partition: partition, Key: []byte("k"), Value: v}
		if err := r.client.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	r.plan(1, assign.MemberPlan{Standby: []assign.TaskID{id(0)}})
	r.await("the standby has it", func() bool { return r.statusOf(0).Lag == 0 && r.m.Totals().Restored == 1 })
	r.plan(2, own(id(0), id(1)))
	r.awaitPhase(id(0), handover.Running)
	r.awaitPhase(id(1), handover.Running)
	r.note(func() {
		for _, e := range r.events.restored {
			if want := e.Task == id(0); e.Local != want {
				t.Errorf("task %s: local %v, want %v", e.Task, e.Local, want)
			}
		}
		if len(r.events.restored) != 2 {
			t.Errorf("restored: %+v", r.events.restored)
		}
	})
}
