package assign

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// TaskID names the unit of work: one partition of one subtopology.
type TaskID struct {
	Subtopology int32
	Partition   int32
}

// String is the form used in output, directory names and topics' metadata, e.g. "0_3".
func (t TaskID) String() string {
	return strconv.Itoa(int(t.Subtopology)) + "_" + strconv.Itoa(int(t.Partition))
}

// Compare orders tasks by subtopology, then partition.
func (t TaskID) Compare(o TaskID) int {
	return cmp.Or(cmp.Compare(t.Subtopology, o.Subtopology), cmp.Compare(t.Partition, o.Partition))
}

// ParseTaskID reads the form that String writes.
func ParseTaskID(s string) (TaskID, error) {
	sub, part, ok := strings.Cut(s, "_")
	if ok {
		a, errA := strconv.ParseInt(sub, 10, 32)
		b, errB := strconv.ParseInt(part, 10, 32)
		if errA == nil && errB == nil && a >= 0 && b >= 0 {
			return TaskID{Subtopology: int32(a), Partition: int32(b)}, nil
		}
	}
	return TaskID{}, fmt.Errorf("%q is no task id: want <subtopology>_<partition>, e.g. 0_3", s)
}

// Task is what the assignor knows of a task.
type Task struct {
	ID       TaskID
	Stateful bool
	Racks    []string // in order: those that have replicas of all its input partitions; none: not known
}

// ReleaseID is the release identity of a handover: the generation that first ordered it and the
// member id of the owner that was told to release. Repeated orders carry the same identity.
type ReleaseID struct {
	Generation int32
	Owner      string
}

// Handover is a task on the move together with the identity of its release.
type Handover struct {
	Task    TaskID
	Release ReleaseID
}

// Copy is a task's state held by a member that does not run the task. Position says how much of the
// changelogs it holds (the sum of their positions); only its order among copies of one task matters.
// For copies that are being written it is coarse, so that a report does not change with every record.
type Copy struct {
	Task     TaskID
	Position int64
}

// Incarnation tells two runs under one instance id apart; the later one is the greater.
type Incarnation struct {
	StartMs int64  // wall clock at the first start, ms since the epoch
	Random  uint64 // drawn at the first start
	Starts  uint32 // restarts under this incarnation (it is kept only while draining)
}

// Compare orders incarnations by start time, then random bits, then start counter.
func (i Incarnation) Compare(o Incarnation) int {
	return cmp.Or(cmp.Compare(i.StartMs, o.StartMs), cmp.Compare(i.Random, o.Random), cmp.Compare(i.Starts, o.Starts))
}

// Report is what a member says of itself when it joins a round: what runs there at that moment,
// never what an earlier plan said.
type Report struct {
	Instance    string // the instance id
	Incarnation Incarnation
	Owned       []TaskID   // run, or being opened to run
	Releasing   []Handover // told to release; the release is not acknowledged
	Taking      []Handover // told to take; the token is not seen
	Learning    []Copy     // learners at work, ready ones too
	Ready       []TaskID   // the ready ones among Learning, and the standbys that are as caught up as a ready learner
	Standby     []Copy
	Local       []Copy   // closed state on disk
	Stuck       []TaskID // copies that do not come on here, now or not long ago: better kept by somebody else
	Leaving     bool
	DeadlineMs  int64 // absolute end of the scale-down timeout, ms since the epoch; 0: none
	Capacity    uint32
	Labels      map[string]string
	Rack        string
	ConfigHash  uint64
	Nonce       uint32 // changes only to force a round
}

// Member is a report with the member id that the group coordinator gave to its sender.
type Member struct {
	ID string
	Report
}

// Policy holds the settings that shape a plan; the same on all members of a group.
type Policy struct {
	BalancingFactor int // least spread of loads at which tasks move; minimum and default 2
	MaxLearners     int // bound on learners at work per instance; 0: none
	Standbys        int // standby copies per stateful task
}

// Input is everything that a plan follows from.
type Input struct {
	Generation int32 // of the round being planned
	Tasks      []Task
	Members    []Member
	Policy     Policy
}

// MemberPlan is what one member is told. Each slice is in order of task id.
type MemberPlan struct {
	Own        []TaskID
	Take       []Handover
	Release    []Handover
	Learn      []TaskID
	Standby    []TaskID
	Superseded bool // a later incarnation of the same instance is in the group: exit
}

// Plan maps member ids to what they are told.
type Plan map[string]MemberPlan
