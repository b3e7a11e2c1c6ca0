package reset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/state"
)

// Scope says what is reset.
type Scope struct {
	Offsets bool     // of the group
	Topics  bool     // changelogs, repartition topics and the control topic
	State   bool     // what is on this host
	Stores  []string // only the changelogs of these; with Topics they are among all
}

// All is the whole application, as far as this host reaches.
var All = Scope{Offsets: true, Topics: true, State: true}

// Kind says what a step deletes.
type Kind string

// The kinds.
const (
	Group   Kind = "group"   // the consumer group with its offsets
	Topic   Kind = "topic"   // an internal topic
	Task    Kind = "task"    // a task's database on this host
	Journal Kind = "journal" // the mark of a drain that a restart on this host would go on with
)

// Step deletes one thing. Its JSON form is part of that of `reset -o json`.
type Step struct {
	Kind       Kind           `json:"kind"`
	Name       string         `json:"name"`
	Purpose    string         `json:"purpose,omitempty"`    // of a topic
	Partitions int            `json:"partitions,omitempty"` // of a topic
	Bytes      int64          `json:"bytes,omitempty"`      // of a task
	Offsets    []TopicOffsets `json:"offsets,omitempty"`    // of a group
	Done       bool           `json:"done"`
}

// TopicOffsets are the offsets that a group has committed for a topic, by partition.
type TopicOffsets struct {
	Topic      string          `json:"topic"`
	Partitions map[int32]int64 `json:"partitions"`
}

// Plan is what a reset does, in order, and what it does not.
type Plan struct {
	App      string   `json:"app"`
	Group    string   `json:"group"`
	StateDir string   `json:"state_dir"`
	Steps    []Step   `json:"steps"`
	Stays    []string `json:"stays"`    // what somebody might expect to be reset as well
	Warnings []string `json:"warnings"` // what the chosen scope leads to
}

// Plan looks at what there is to reset and changes nothing. It returns ErrAlive if an instance runs.
func (r *Resetter) Plan(ctx context.Context, scope Scope) (*Plan, error) {
	if err := r.dead(ctx); err != nil {
		return nil, err
	}
	p := &Plan{App: r.cfg.App, Group: r.cfg.Kafka.Group, StateDir: r.cfg.State.Dir, Steps: []Step{}, Warnings: warnings(scope)}
	if scope.Offsets {
		if err := r.planGroup(ctx, p); err != nil {
			return nil, err
		}
	}
	if scope.Topics || len(scope.Stores) > 0 {
		if err := r.planTopics(ctx, p, scope); err != nil {
			return nil, err
		}
	}
	if scope.State {
		if err := r.planState(p); err != nil {
			return nil, err
		}
	}
	r.stays(p, scope)
	return p, nil
}

// warnings tell what becomes of an application of which only a part is reset.
func warnings(s Scope) []string {
	out := []string{}
	switch {
	case s.Offsets && !s.Topics:
		out = append(out, "the stores keep their contents (their changelogs stay), and the inputs are read again into them: counts and sums will have counted everything twice")
	case len(s.Stores) > 0 && !s.Topics && !s.Offsets:
		out = append(out, "the stores named start empty, and the inputs are read on from where they are: they will lack everything before that")
	case s.Topics && !s.Offsets:
		out = append(out, "the stores start empty, and the inputs are read on from where they are: counts and sums will lack everything before that; "+
			"records in repartition topics that were not processed yet are lost")
	}
	return out
}

func (r *Resetter) planGroup(ctx context.Context, p *Plan) error {
	name := r.cfg.Kafka.Group
	g, err := r.describe(ctx)
	if errors.Is(err, kerr.GroupIDNotFound) || err == nil && g.State == "Dead" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking for group %s: %w", name, err)
	}
	committed, err := r.adm.FetchOffsets(ctx, name)
	if err != nil {
		return fmt.Errorf("reading the offsets of group %s: %w", name, err)
	}
	step := Step{Kind: Group, Name: name}
	for topic, partitions := range committed {
		t := TopicOffsets{Topic: topic, Partitions: make(map[int32]int64, len(partitions))}
		for n, o := range partitions {
			if o.Err != nil {
				return fmt.Errorf("reading the offset of group %s for partition %d of topic %s: %w", name, n, topic, o.Err)
			}
			t.Partitions[n] = o.At
		}
		step.Offsets = append(step.Offsets, t)
	}
	slices.SortFunc(step.Offsets, func(a, b TopicOffsets) int { return cmp.Compare(a.Topic, b.Topic) })
	p.Steps = append(p.Steps, step)
	return nil
}

// internalTopics are the topics that belong to the application and what they are for. The control topic is the last: as
// long as it is there, it tells of instances that are alive.
func (r *Resetter) internalTopics() (names []string, purpose map[string]string) {
	purpose = make(map[string]string)
	for _, s := range r.cfg.Topology.Subtopologies {
		for _, store := range s.Stores {
			names = append(names, store.Changelog)
			purpose[store.Changelog] = "changelog of store " + store.Name
		}
		for _, sink := range s.Sinks {
			if sink.Internal && purpose[sink.Topic] == "" {
				names = append(names, sink.Topic)
				purpose[sink.Topic] = "repartition topic"
			}
		}
	}
	slices.Sort(names)
	name := control.TopicName(r.cfg.App)
	purpose[name] = "marks and statuses of instances"
	return append(names, name), purpose
}

// changelogs are those of the stores with these names.
func (r *Resetter) changelogs(stores []string) (names []string, err error) {
	for _, name := range stores {
		_, store := r.cfg.Topology.Store(name)
		if store == nil {
			return nil, fmt.Errorf("the configuration has no store %q: streamworker topology shows those that there are", name)
		}
		names = append(names, store.Changelog)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (r *Resetter) planTopics(ctx context.Context, p *Plan, scope Scope) error {
	names, purpose := r.internalTopics()
	if !scope.Topics {
		var err error
		if names, err = r.changelogs(scope.Stores); err != nil {
			return err
		}
	}
	found, err := r.adm.ListTopics(ctx, names...)
	if err != nil {
		return fmt.Errorf("asking for topics: %w", err)
	}
	for _, name := range names {
		switch t := found[name]; {
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition):
		case t.Err != nil:
			return fmt.Errorf("asking for topic %s: %w", name, t.Err)
		default:
			p.Steps = append(p.Steps, Step{Kind: Topic, Name: name, Purpose: purpose[name], Partitions: len(t.Partitions)})
		}
	}
	all, err := r.adm.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("asking for all topics: %w", err)
	}
	for _, name := range all.Names() {
		if _, ours := purpose[name]; !ours && lookalike(r.cfg.App, name) {
			p.Stays = append(p.Stays, fmt.Sprintf("topic %s: the configuration has no such store; it belongs to another application, or to a former version of this one", name))
		}
	}
	if !r.cfg.InternalTopics.Create && slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind == Topic }) {
		p.Warnings = append(p.Warnings, "internal_topics.create is false: create the deleted topics again before the next start, which prints the commands")
	}
	return nil
}

func lookalike(app, topic string) bool {
	return strings.HasPrefix(topic, app+"-") && (strings.HasSuffix(topic, "-changelog") || strings.HasSuffix(topic, "-repartition"))
}

func (r *Resetter) planState(p *Plan) error {
	dir := r.cfg.State.Dir
	tasks, err := state.ListDirectory(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if _, err := assign.ParseTaskID(t.Task); err != nil {
			p.Stays = append(p.Stays, filepath.Join(dir, "tasks", t.Task)+": its name is not that of a task")
			continue
		}
		p.Steps = append(p.Steps, Step{Kind: Task, Name: t.Task, Bytes: t.Bytes})
	}
	if _, err := os.Lstat(filepath.Join(dir, leave.JournalFile)); err == nil {
		p.Steps = append(p.Steps, Step{Kind: Journal, Name: leave.JournalFile})
	}
	return nil
}

// stays tells what is left alone although a rerun touches it.
func (r *Resetter) stays(p *Plan, s Scope) {
	top := r.cfg.Topology
	p.Stays = append(p.Stays, "input topics ("+strings.Join(top.Inputs(), ", ")+"): nothing is deleted")
	if s.Offsets && len(top.Outputs()) > 0 {
		p.Stays = append(p.Stays, "topics that are written to ("+strings.Join(top.Outputs(), ", ")+"): they keep their records, and the next run writes its results behind them")
	}
	if s.Topics || len(s.Stores) > 0 {
		p.Stays = append(p.Stays, "local state on other hosts: instances there drop it at their next start, as its changelogs are new")
	} else if s.State {
		p.Stays = append(p.Stays, "local state on other hosts: run this command on each")
	}
}

// describe asks for the group.
func (r *Resetter) describe(ctx context.Context) (g kadm.DescribedGroup, err error) {
	name := r.cfg.Kafka.Group
	err = kafka.Settled(ctx, func() error {
		groups, err := r.adm.DescribeGroups(ctx, name)
		if g = groups[name]; err == nil {
			err = g.Err
		}
		return err
	})
	return g, err
}

// dead returns ErrAlive, with names, if the group has members or an instance says that it runs.
func (r *Resetter) dead(ctx context.Context) error {
	name := r.cfg.Kafka.Group
	g, err := r.describe(ctx)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("asking for group %s: %w", name, err)
	}
	if len(g.Members) > 0 {
		return alive(g, r.cfg.Kafka.SessionTimeout)
	}
	statuses, err := r.bus.ReadStatuses(ctx)
	if errors.Is(err, control.ErrNoTopic) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking which instances are alive: %w", err)
	}
	var running []string
	for _, s := range statuses {
		if !s.Stale(r.now()) && s.Left == "" && s.State != control.Stopping {
			running = append(running, fmt.Sprintf("%s (%s, last seen %s ago)", s.Instance, s.State, r.now().Sub(s.Seen).Round(time.Second)))
		}
	}
	if len(running) > 0 {
		return fmt.Errorf("%w: instances outside of the group that may join it any moment: %s: stop them; of one that was killed this is known after %s",
			ErrAlive, strings.Join(running, ", "), control.StaleAfter)
	}
	return nil
}

func alive(g kadm.DescribedGroup, session time.Duration) error {
	members := make([]string, len(g.Members))
	for i, m := range g.Members {
		members[i] = m.ClientID + " at " + strings.TrimPrefix(m.ClientHost, "/")
	}
	slices.Sort(members)
	return fmt.Errorf("%w: group %s has members: %s: stop them, by streamworker stop on their hosts or streamworker leave; "+
		"one that was killed, or stopped with on_terminate: keep, stays a member for its session (%s)", ErrAlive, g.Group, strings.Join(members, ", "), session)
}
