package tasks

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
	"github.com/streamworker/streamworker/pkg/topology"
)

// Subtopology is a part of the topology together with what the cluster says of its topics.
type Subtopology struct {
	*topology.Subtopology
	Partitions int32             // the number of its tasks
	Stores     []state.StoreSpec // in the order of Subtopology.Stores
}

// Global is a table that every instance has whole, together with what the cluster says of its topic.
type Global struct {
	*topology.Global
	Partitions int32
}

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Offset is a committed offset, or one to be committed.
type Offset struct {
	TopicPartition
	Offset   int64 // the next record to process; -1 when fetched: none is committed
	Metadata string
}

// Offsets reads and writes the group's committed offsets.
type Offsets interface {
	// Commit sends one request under the lease. The error explains an outcome other than Acknowledged. With any
	// outcome it may be a *RefusedError.
	Commit(ctx context.Context, lease handover.Lease, offsets []Offset) (handover.Outcome, error)
	// Fetch returns the stable offsets of the partitions. Those with an unfinished transaction are left out; so
	// are those that failed, which the error tells of then.
	Fetch(ctx context.Context, parts []TopicPartition) (map[TopicPartition]Offset, error)
}

// RefusedError tells which partitions of a commit were certainly not written, for a reason that concerns them
// alone, such as a topic that is gone. The outcome is that of the others, or Declined if there are none.
type RefusedError struct{ Partitions map[TopicPartition]error }

// Error names one of them.
func (e *RefusedError) Error() string {
	for tp, err := range e.Partitions {
		return fmt.Sprintf("the offsets of %d partitions are refused, such as %s partition %d: %v", len(e.Partitions), tp.Topic, tp.Partition, err)
	}
	return "no offsets are refused"
}

// of returns why the commit of one of these partitions was refused; nil: it was not.
func (e *RefusedError) of(parts []TopicPartition) error {
	for _, tp := range parts {
		if err := e.Partitions[tp]; err != nil {
			return fmt.Errorf("the offset of %s partition %d is refused: %w", tp.Topic, tp.Partition, err)
		}
	}
	return nil
}

// Logs answers where logs begin and end, and shortens them.
type Logs interface {
	// Ends returns each partition's log end (read uncommitted).
	Ends(ctx context.Context, parts []TopicPartition) (map[TopicPartition]int64, error)
	// Starts returns each partition's first retained offset.
	Starts(ctx context.Context, parts []TopicPartition) (map[TopicPartition]int64, error)
	// Purge deletes each partition's records before the offset.
	Purge(ctx context.Context, before map[TopicPartition]int64) error
}

// Group is the instance's membership. Its methods must return at once.
type Group interface {
	// ForceRound asks for a new round.
	ForceRound()
	// Expired says whether the group may have removed this member, by the instance's own clock.
	Expired(now time.Time) bool
}

// Identity is what an instance says of itself in every report.
type Identity struct {
	Instance    string
	Incarnation assign.Incarnation
	Capacity    uint32
	Labels      map[string]string
	Rack        string
	ConfigHash  uint64
}

// Config is what a Manager needs.
type Config struct {
	Identity      Identity
	Subtopologies []Subtopology // by id
	Globals       []Global
	Engine        *state.Engine
	Reader        *state.Reader               // tails changelogs; run by the caller
	Input         *kgo.Client                 // direct consumer, no partitions yet, no reset offset; closed by the caller
	NewProducer   func() (*kgo.Client, error) // with Partitioner(); closed by the manager
	Limits        topology.Limits             // of the producers
	Transactions  Transactions                // nil: at least once; else NewProducer makes transactional producers
	Offsets       Offsets
	Logs          Logs
	Group         Group
	Events        Events
	Logger        *slog.Logger

	Threads        int           // tasks that compute at one time; default 1
	CommitInterval time.Duration // default 100 ms
	AcceptableLag  int64         // records a ready learner may be behind; default 10,000
	StuckAfter     time.Duration // without progress a copy counts as stuck; default 10 min
	Stable         bool          // say ready only when all learners are
	Yields         bool          // the group client has what runs revoked before every join
}

func (c *Config) ensureDefaults() {
	if c.Threads <= 0 {
		c.Threads = 1
	}
	if c.CommitInterval <= 0 {
		c.CommitInterval = 100 * time.Millisecond
	}
	if c.AcceptableLag <= 0 {
		c.AcceptableLag = 10_000
	}
	if c.StuckAfter <= 0 {
		c.StuckAfter = 10 * time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Events.ensureDefaults()
}

// subtopology finds the part that a task belongs to; nil: this instance's topology has no such task.
func (c *Config) subtopology(t assign.TaskID) *Subtopology {
	if t.Subtopology < 0 || int(t.Subtopology) >= len(c.Subtopologies) ||
		t.Partition < 0 || t.Partition >= c.Subtopologies[t.Subtopology].Partitions {
		return nil
	}
	return &c.Subtopologies[t.Subtopology]
}

// known takes the tasks out of a plan that this instance's topology does not have, as members may run
// different files. It also returns those that this instance was to run. To claim them would be a lie: they would
// stand still as long as this instance is there, and a leave would wait for ever to hand them over.
func (c *Config) known(p assign.MemberPlan) (_ assign.MemberPlan, unknown []assign.TaskID) {
	tasks := func(list []assign.TaskID) []assign.TaskID {
		return slices.DeleteFunc(slices.Clone(list), func(t assign.TaskID) bool { return c.subtopology(t) == nil })
	}
	handovers := func(list []assign.Handover) []assign.Handover {
		return slices.DeleteFunc(slices.Clone(list), func(h assign.Handover) bool { return c.subtopology(h.Task) == nil })
	}
	for _, t := range p.Own {
		if c.subtopology(t) == nil {
			unknown = append(unknown, t)
		}
	}
	p.Own, p.Learn, p.Standby = tasks(p.Own), tasks(p.Learn), tasks(p.Standby)
	p.Take, p.Release = handovers(p.Take), handovers(p.Release)
	return p, unknown
}

// sources are the partitions that a task consumes, in the order of the subtopology's sources.
func (s *Subtopology) sources(t assign.TaskID) []TopicPartition {
	out := make([]TopicPartition, len(s.Sources))
	for i := range s.Sources {
		out[i] = TopicPartition{Topic: s.Sources[i].Topic, Partition: t.Partition}
	}
	return out
}

// changelogs are the partitions that hold a task's state, in the order of its stores.
func (s *Subtopology) changelogs(t assign.TaskID) []TopicPartition {
	out := make([]TopicPartition, len(s.Stores))
	for i := range s.Stores {
		out[i] = TopicPartition{Topic: s.Stores[i].Changelog, Partition: t.Partition}
	}
	return out
}

// storesID tells the stores of a subtopology and their order from others; 0: there are none.
func (s *Subtopology) storesID() uint32 {
	if len(s.Stores) == 0 {
		return 0
	}
	h := fnv.New32a()
	for i := range s.Stores {
		_, _ = fmt.Fprintln(h, s.Stores[i].Changelog) // never fails
	}
	return h.Sum32()
}

// keeps reports whether the positions of a token are those of the stores of s.
func (s *Subtopology) keeps(tok *handover.Token) bool {
	return len(tok.Positions) == len(s.Stores) && (tok.Stores == 0 || tok.Stores == s.storesID())
}
