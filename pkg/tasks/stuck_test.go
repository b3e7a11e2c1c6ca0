package tasks

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// A learner's changelog cannot be read. The instance asks for a round, in which it says that the copy is stuck, and its status
// says why; it goes on doing so when the learner is taken away.
func TestLearnerThatDoesNotComeOn(t *testing.T) {
	r := newRig(t, countStreams, 1, func(c *Config) { c.StuckAfter = 300 * time.Millisecond })
	r.cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		r.cluster.KeepControl()
		return nil, errors.New("no answer"), true
	})
	r.start()
	r.plan(1, assign.MemberPlan{Learn: []assign.TaskID{id(0)}})
	stuck := func() bool { return len(r.m.Status().Stuck) == 1 }
	r.await("the learner is stuck", stuck)
	if reason := r.m.Status().Stuck[0].Reason; !strings.Contains(reason, "has not come on for 300ms") {
		t.Error(reason)
	}
	if r.group.rounds.Load() == 0 {
		t.Error("no round was asked for")
	}
	if got := r.m.Report().Stuck; !slices.Equal(got, []assign.TaskID{id(0)}) {
		t.Errorf("the report says %v", got)
	}
	r.await("it is stuck once more, for longer", func() bool {
		var times int
		r.inside(func() { times = r.m.stuck.Times(id(0)) })
		return times > 3
	})
	r.plan(2, assign.MemberPlan{})
	if r.await("the task is closed", func() bool { return len(r.m.Status().Tasks) == 0 }); !stuck() {
		t.Error("that it was stuck is forgotten at once")
	}
}
