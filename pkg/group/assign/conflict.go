package assign

import (
	"fmt"
	"slices"
)

// ConflictKind says what is wrong with a report.
type ConflictKind uint8

// The kinds of conflict.
const (
	TwoOwners         ConflictKind = iota // two members claim to own a task
	UnknownTask                           // a claim for a task that does not exist
	DuplicateInstance                     // two members use one instance id
	OtherConfig                           // two members run different topologies or policies
)

// Conflict is a contradiction between reports, or between a report and the topology, that the plan settles
// and an operator should hear of. Correct members with distinct instance ids make none, but a restart may
// for one round.
type Conflict struct {
	Kind     ConflictKind
	Task     TaskID // of TwoOwners and UnknownTask
	Instance string // of DuplicateInstance
	Kept     string // member id whose claim stands; empty for UnknownTask
	Refused  string // member id whose claim does not; of OtherConfig: the first that differs from Kept
}

// String is a sentence for a log.
func (c Conflict) String() string {
	switch c.Kind {
	case TwoOwners:
		return fmt.Sprintf("members %s and %s both claim to own task %s: %s keeps it", c.Kept, c.Refused, c.Task, c.Kept)
	case UnknownTask:
		return fmt.Sprintf("member %s claims task %s, which does not exist", c.Refused, c.Task)
	case OtherConfig:
		return fmt.Sprintf("members %s and %s run different configurations of the application, or see different numbers of partitions: "+
			"their tasks may not fit together until all run the same", c.Kept, c.Refused)
	default:
		return fmt.Sprintf("members %s and %s both run as instance %s: %s has to exit", c.Kept, c.Refused, c.Instance, c.Refused)
	}
}

// Conflicts lists what Assign settles silently, members in order of id.
func Conflicts(in Input) []Conflict {
	var found []Conflict
	index := taskIndex(sortedTasks(in.Tasks))
	members := sortedMembers(in.Members)
	latest := latestIncarnations(members)
	owners := make(map[TaskID]string)
	if len(members) > 0 {
		first := members[0]
		if i := slices.IndexFunc(members, func(m *Member) bool { return m.ConfigHash != first.ConfigHash }); i > 0 {
			found = append(found, Conflict{Kind: OtherConfig, Kept: first.ID, Refused: members[i].ID})
		}
	}
	for _, m := range members {
		if l := latest[m.Instance]; m.Instance != "" && l != m {
			found = append(found, Conflict{Kind: DuplicateInstance, Instance: m.Instance, Kept: l.ID, Refused: m.ID})
		}
		for _, id := range claimed(m) {
			if _, ok := index[id]; !ok {
				found = append(found, Conflict{Kind: UnknownTask, Task: id, Refused: m.ID})
			}
		}
		for _, id := range m.Owned {
			if owner, ok := owners[id]; ok && owner != m.ID {
				found = append(found, Conflict{Kind: TwoOwners, Task: id, Kept: owner, Refused: m.ID})
			} else {
				owners[id] = m.ID
			}
		}
	}
	return found
}

// claimed lists the tasks that a member runs or is about to run, each once, in order. Copies are left out:
// state of a task that is gone may well lie on a disk.
func claimed(m *Member) []TaskID {
	ids := slices.Clone(m.Owned)
	for _, h := range m.Releasing {
		ids = append(ids, h.Task)
	}
	for _, h := range m.Taking {
		ids = append(ids, h.Task)
	}
	slices.SortFunc(ids, TaskID.Compare)
	return slices.Compact(ids)
}
