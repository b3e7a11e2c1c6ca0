package handover

import "github.com/streamworker/streamworker/pkg/group/assign"

// Phase is what an instance does with one task.
type Phase uint8

// The phases of a task. The comment says what the instance claims of it at a join.
const (
	Idle       Phase = iota // nothing
	Opening                 // owned: committed offset and state are being brought up
	Running                 // owned
	Looking                 // releasing: the committed offset is to be fetched before the release is committed
	Releasing               // releasing: stop, flush, commit with the token
	Refused                 // releasing: the release was refused; the next plan decides
	Unanswered              // releasing: the outcome of the release is unknown; the next plan decides
	Released                // nothing: the release is acknowledged
	Taking                  // taking: waits for the token
	Learning                // learning, or ready
	Standby                 // standby
)

var phaseNames = [...]string{
	"idle", "opening", "running", "looking", "releasing", "refused", "unanswered", "released", "taking", "learning", "standby",
}

// String is the phase's name as logs show it.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "unknown"
}

// Owns says whether the instance claims the task as its own.
func (p Phase) Owns() bool { return p == Opening || p == Running }

// InRelease says whether the instance was told to release the task and has no acknowledgement yet.
func (p Phase) InRelease() bool {
	return p == Looking || p == Releasing || p == Refused || p == Unanswered
}

// Copies says whether the instance keeps a copy of the task that it does not run.
func (p Phase) Copies() bool { return p == Learning || p == Standby }

// Holds says whether a leaving instance must wait for the task before it may exit.
func (p Phase) Holds() bool { return p.Owns() || p.InRelease() || p == Taking }

// Lease is the right to commit: the broker accepts a commit only from this member in this generation.
type Lease struct {
	Member     string
	Generation int32
}

// TaskState is what the machine knows of one task.
type TaskState struct {
	Phase Phase
	// Epoch changes whenever a plan, a loss or a failure changes what is to be done. The outcome of
	// work begun under an earlier epoch is ignored.
	Epoch uint64
	// Release is the identity of the order that the task is released or taken under. A task that was
	// taken keeps it until a plan names the task without one.
	Release assign.ReleaseID
	// Ready is set on a learner or standby that has caught up.
	Ready bool

	said    bool             // the last report said that the learner is ready
	after   assign.ReleaseID // last release found when the task was opened, or looked at for the first time
	found   bool             // after is set
	pending Lease            // a commit under this lease is on its way, or got no answer: it may still arrive
}

// Outcome is how a commit ended.
type Outcome uint8

// The outcomes of a commit.
const (
	Acknowledged Outcome = iota // written
	Declined                    // certainly not written
	Unknown                     // no answer: it may have been written, or may still be
)
