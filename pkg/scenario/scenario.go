package scenario

import (
	"fmt"
	"os"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// Learners says when a member with several learners asks for a round.
type Learners string

// The modes.
const (
	Eager  Learners = "eager"  // as soon as one learner is ready
	Stable Learners = "stable" // once all of them are
)

// Scenario is a scenario file that was read.
type Scenario struct {
	Name string
	// GroupBytes measures the record in which Kafka would keep the group after a round; nil leaves
	// max_group_bytes out. Task n of the scenario, in order of id, is partition n of subtopology 0.
	GroupBytes func(assign.Input, assign.Plan) int

	file        *yamlnode.File
	learners    Learners
	policy      assign.Policy
	times       times
	crashes     crashes
	restoreRate float64 // bytes a second and instance
	anyChanges  bool    // some task has changes
	anyLoad     bool
	tasks       []task
	index       map[string]assign.TaskID
	members     []memberSpec // in the file's order
	events      []event
}

type task struct {
	name     string
	stateful bool
	size     float64 // bytes of state
	changes  float64 // bytes a second that it writes to its changelog while it runs
	load     float64 // share that it needs of an instance of capacity 1
}

// times is how long things take besides restoring, in seconds.
type times struct {
	round    float64 // a round, from its beginning to its plan
	pause    float64 // all tasks stop for that in each round
	handover float64 // a task that changes hands stops for that
	session  float64 // until the group notices that a member is gone
	restart  float64 // a member that restarts is away
}

// crashes are those that happen by chance, while the scenario waits.
type crashes struct {
	every float64 // mean time between those of an instance, in seconds; 0: none
	seed  uint64
}

// memberSpec is what the file says of a member when it joins.
type memberSpec struct {
	name     string
	node     yamlnode.Node
	capacity uint32
	rack     string
	labels   map[string]string
	leads    bool

	owned, standby, learning, local []assign.TaskID
}

type kind string

const (
	none        kind = ""
	join        kind = "join"
	leave       kind = "leave"
	ready       kind = "ready"
	crash       kind = "crash"
	timeout     kind = "timeout"
	cancelLeave kind = "cancel_leave"
	restart     kind = "restart"
	settle      kind = "settle"
	wait        kind = "wait"
)

type event struct {
	kind     kind
	node     yamlnode.Node
	subjects []subject         // of all but settle and wait
	selector map[string]string // of all but join and ready
	all      bool              // of ready
	seconds  float64           // of wait
}

// subject is a member that an event is about.
type subject struct {
	name  string
	node  yamlnode.Node
	spec  memberSpec      // of join
	tasks []assign.TaskID // of ready
}

// Load reads a scenario file. Its mistakes come back all at once, each with file, line and column.
func Load(path string) (*Scenario, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	return Parse(path, src)
}

// Parse is Load for a scenario at hand; name is what messages call it.
func Parse(name string, src []byte) (*Scenario, error) {
	s := &Scenario{Name: name, file: yamlnode.Parse(name, src, nil), index: make(map[string]assign.TaskID)}
	if err := s.file.Err(); err != nil {
		return nil, err
	}
	reader{s}.scenario(s.file.Root())
	if err := s.file.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Scenario) taskName(id assign.TaskID) string { return s.tasks[id.Partition].name }

func (s *Scenario) taskNames(ids []assign.TaskID) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = s.taskName(id)
	}
	return names
}
