package instance

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/topics"
	"github.com/streamworker/streamworker/pkg/topology"
)

// layout is the topology as it lies on the cluster's topics.
type layout struct {
	tasks   []tasks.Subtopology
	globals []tasks.Global
	group   []group.Subtopology
	writes  []string                       // topics that tasks write to
	needs   map[string][]kmsg.ACLOperation // by topic
	limits  topology.Limits                // of the producer
	hash    uint64                         // of the configuration and the partition counts: what all members should agree on
}

// Needs are what an application needs of its cluster's topics.
type Needs struct {
	Tasks    []int32                        // number of each subtopology's tasks
	Internal []topics.Spec                  // changelogs and repartition topics; the control topic is pkg/control's
	Rights   map[string][]kmsg.ACLOperation // by topic, internal ones and the control topic too
	Hash     uint64                         // of the configuration and the partition counts: what all members should agree on
}

// NeedsOf works them out from the partition counts of the input topics. It asks nobody.
func NeedsOf(cfg *config.Config, inputs map[string]int32) (*Needs, error) {
	counts, internal, err := cfg.Topology.PartitionCounts(inputs)
	if err != nil {
		return nil, err
	}
	n := &Needs{Tasks: counts}
	durability := topics.Durability{Replication: max(0, cfg.InternalTopics.Replication), MinInsync: cfg.InternalTopics.MinInsyncReplicas}
	for _, s := range cfg.Topology.Subtopologies {
		for _, store := range s.Stores {
			n.Internal = append(n.Internal, topics.Changelog(store.Changelog, store.Name, internal[store.Changelog], durability))
		}
		for _, sink := range s.Sinks {
			if sink.Internal {
				n.Internal = append(n.Internal, topics.Repartition(sink.Topic, internal[sink.Topic], durability))
			}
		}
	}
	n.Rights = rights(cfg.App, cfg.Topology, n.Internal)
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, cfg.ConfigHash(), counts) // never fails
	n.Hash = h.Sum64()
	return n, nil
}

// prepare checks the topics that the application reads and writes, and makes or checks its internal ones.
func prepare(ctx context.Context, cl *kgo.Client, cfg *config.Config) (*layout, error) {
	top := cfg.Topology
	known, err := topics.Describe(ctx, cl, append(top.Inputs(), top.Outputs()...))
	if err != nil {
		return nil, err
	}
	inputs := map[string]int32{}
	for _, name := range top.Inputs() {
		inputs[name] = known[name].Partitions
	}
	n, err := NeedsOf(cfg, inputs)
	if err != nil {
		return nil, err
	}
	made, err := topics.Ensure(ctx, cl, n.Internal, cfg.InternalTopics.Create)
	if err != nil {
		return nil, err
	}
	l := &layout{hash: n.Hash, writes: top.Outputs(), needs: n.Rights}
	for _, s := range n.Internal {
		l.writes = append(l.writes, s.Name)
	}
	if l.limits, err = limits(ctx, cl, cfg.Kafka.MaxMessageBytes, l.writes); err != nil {
		return nil, err
	}
	for i, s := range top.Subtopologies {
		sub := tasks.Subtopology{Subtopology: s, Partitions: n.Tasks[i]}
		for _, store := range s.Stores {
			info := made[store.Changelog]
			sub.Stores = append(sub.Stores, state.StoreSpec{
				Name: store.Name, Changelog: store.Changelog, TopicID: info.ID, Retention: info.DeleteRetention, Definition: store.Definition(),
			})
		}
		l.tasks = append(l.tasks, sub)
		l.group = append(l.group, group.Subtopology{ID: s.ID, Topics: s.Topics(), Partitions: n.Tasks[i], Stateful: s.Stateful})
	}
	for _, g := range top.Globals {
		l.globals = append(l.globals, tasks.Global{Global: g, Partitions: inputs[g.Topic]})
	}
	return l, nil
}

// limits bounds what is written to each topic by what the brokers take.
func limits(ctx context.Context, cl *kgo.Client, most int, names []string) (topology.Limits, error) {
	l := topology.Limits{Most: most, Topics: make(map[string]int)}
	known, err := topics.MaxMessageBytes(ctx, cl, names)
	for name, bytes := range known {
		if bytes < most {
			l.Topics[name] = max(bytes, leastBatch)
		}
	}
	return l, err
}

// leastBatch is the smallest bound of a batch that the client takes.
const leastBatch = 512

// rights are what an instance must be able to do with each topic.
func rights(app string, top *topology.Topology, internal []topics.Spec) map[string][]kmsg.ACLOperation {
	const read, write = kmsg.ACLOperationRead, kmsg.ACLOperationWrite
	needs := map[string][]kmsg.ACLOperation{control.TopicName(app): {read, write}}
	for _, name := range top.Inputs() {
		needs[name] = append(needs[name], read)
	}
	for _, name := range top.Outputs() {
		needs[name] = append(needs[name], write)
	}
	for _, s := range internal {
		needs[s.Name] = []kmsg.ACLOperation{read, write}
		if s.Cleanup == topics.Delete { // what was processed is deleted
			needs[s.Name] = append(needs[s.Name], kmsg.ACLOperationDelete)
		}
	}
	return needs
}

// unreachableAfter is how long an instance waits for Kafka at its start.
const unreachableAfter = 30 * time.Second

// consult waits until Kafka answers, then finds out and arranges there what the parts need. A broker that goes meanwhile is waited for
// as well: whoever starts many instances does not choose the moment.
func (i *Instance) consult(ctx context.Context, p *parts) (lay *layout, err error) {
	wait := i.opts.ReachTimeout
	if wait <= 0 {
		wait = unreachableAfter
	}
	i.log.Info("looking for Kafka", "brokers", strings.Join(i.cfg.Kafka.Brokers, ","), "at_most", wait.String())
	if err = kafka.Reach(ctx, p.clients.admin, wait); err == nil {
		err = kafka.Persist(ctx, p.clients.admin, wait, i.log, func() (err error) {
			lay, err = i.arrange(ctx, p)
			return err
		})
	}
	if errors.Is(err, kafka.ErrUnreachable) {
		err = fmt.Errorf("starting %s: %w", i.cfg.App, err)
	}
	return lay, err
}

// arrange checks the cluster's topics, creates those that are the application's own, and records what this instance runs. Done again, it
// changes nothing.
func (i *Instance) arrange(ctx context.Context, p *parts) (*layout, error) {
	c, admin := i.cfg, p.clients.admin
	lay, err := prepare(ctx, admin, c)
	if err != nil {
		return nil, err
	}
	if c.InternalTopics.Create {
		err = p.bus.EnsureTopic(ctx, c.InternalTopics.Replication)
	} else {
		err = p.bus.CheckTopic(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := topics.CheckRights(ctx, admin, lay.needs); err != nil {
		return nil, err
	}
	p.evolution = &evolution{cfg: c, id: i.id, log: i.log, lay: lay, bus: p.bus, now: time.Now}
	if err := p.evolution.check(ctx, admin, p.engine.Stored()); err != nil {
		return nil, err
	}
	if c.Guarantee == config.ExactlyOnce {
		p.transactions, err = i.newTransactions(ctx, admin, lay)
	}
	return lay, err
}
