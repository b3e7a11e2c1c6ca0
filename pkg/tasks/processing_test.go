package tasks

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// A task whose output the brokers do not take is opened anew again and again, and replays its changelog each time.
// Were each attempt to leave its changes there, it would count the same records once more each time.
func TestOutputThatCannotBeWrittenDoesNotCountAgainAndAgain(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.plan(1, own(id(0)))
	r.awaitPhase(id(0), handover.Running)
	r.send(0, 10, 1)
	r.awaitCommitted(0, 10)
	fault := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Err: kerr.TopicAuthorizationFailed, Count: -1})
	r.send(0, 10, 1)
	r.await("four attempts fail", func() bool { return r.statusOf(0).Failures >= 4 })
	fault.Remove()
	r.awaitCommitted(0, 20)
	// The first attempt does not know yet, and may leave the changes behind.
	if last, _ := r.counts("app-counts-changelog"); last["0/0"] < 20 || last["0/0"] > 30 {
		t.Fatalf("counted %d, sent 20: only one attempt may count twice", last["0/0"])
	}
}
