package dev

import (
	_ "embed"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/topology"
)

//go:embed wordcount.yaml
var wordCount []byte

// What the word count's learners may read, bytes per second: slow enough that their progress is seen, and faster than
// changelogs grow at any rate. One that joins has more to learn.
const (
	learnerBytesPerLine = 80
	learnerBytesLeast   = 64 << 10
	joinerBytes         = 2 // times as many
)

// application is what the instances run.
type application struct {
	cfg      Config
	file     string
	src      []byte
	brokers  []string
	prefix   string // of its name and topics
	embedded bool

	name       string // of the application
	group      string
	topology   *topology.Topology
	factor     int // instances whose loads differ by less are balanced
	commits    time.Duration
	guarantee  config.Guarantee
	partitions int32 // of each input topic
	tasks      int
}

// loadApplication reads what the instances will run. Mistakes in the file are yamlnode.Problems.
func loadApplication(cfg Config, b *broker) (*application, error) {
	a := &application{cfg: cfg, file: "word count", src: wordCount, brokers: b.addresses, prefix: b.prefix, embedded: b.fake != nil}
	if cfg.wordCount != nil {
		a.src = cfg.wordCount
	}
	if cfg.File != "" {
		var err error
		if a.src, err = os.ReadFile(cfg.File); err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		a.file = cfg.File
	}
	c, err := a.config("", os.TempDir(), false)
	if err != nil {
		return nil, err
	}
	a.name, a.group, a.topology = c.App, c.Kafka.Group, c.Topology
	a.factor, a.commits, a.guarantee = c.BalancingFactor, c.CommitInterval, c.Guarantee
	a.partitions = partitionsFor(len(c.Topology.Subtopologies))
	a.tasks = int(a.partitions) * len(c.Topology.Subtopologies)
	return a, nil
}

// partitionsFor gives each topic so many partitions that the tasks fit side by side on a terminal.
func partitionsFor(subtopologies int) int32 {
	const columns = 12
	return int32(min(6, max(2, columns/subtopologies)))
}

// own says whether the application is the user's.
func (a *application) own() bool { return a.cfg.File != "" }

// program is what says what to compute, in place of the user's file.
func (a *application) program() *topology.Program {
	if !a.own() {
		return nil
	}
	return a.cfg.Program
}

// config is the configuration of one instance; joins: it is not there from the start.
func (a *application) config(id, dir string, joins bool) (*config.Config, error) {
	c, err := config.Parse(a.file, a.src, a.cfg.Lookup, config.Overrides{
		Brokers: a.brokers, InstanceID: id, StateDir: dir, Prefix: a.prefix, Program: a.program(),
	})
	if err != nil {
		return nil, err
	}
	if a.prefix == "" { // an embedded broker, which speaks no TLS and asks for no password
		c.Kafka.Connection = kafka.Connection{Brokers: a.brokers}
	}
	// Nobody else creates them here, and they need not outlive a broker.
	c.InternalTopics = config.InternalTopics{Create: true, Replication: -1}
	if !a.own() {
		c.Learners.Bandwidth = max(learnerBytesLeast, int64(a.cfg.Rate)*learnerBytesPerLine)
		if joins {
			c.Learners.Bandwidth *= joinerBytes
		}
	}
	return c, nil
}

// internal lists the repartition topics.
func (a *application) internal() []string {
	var topics []string
	for _, s := range a.topology.Subtopologies {
		for _, source := range s.Sources {
			if source.Internal {
				topics = append(topics, source.Topic)
			}
		}
	}
	return topics
}

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// changelogs are those of a task, by its id.
func (a *application) changelogs(task string) []place {
	var places []place
	for _, s := range a.topology.Subtopologies {
		for p := range a.partitions {
			if (assign.TaskID{Subtopology: s.ID, Partition: p}).String() != task {
				continue
			}
			for _, store := range s.Stores {
				places = append(places, place{store.Changelog, p})
			}
		}
	}
	return places
}

// taskNames are the ids of all tasks, in order.
func (a *application) taskNames() []string {
	var names []string
	for _, s := range a.topology.Subtopologies {
		for p := range a.partitions {
			names = append(names, assign.TaskID{Subtopology: s.ID, Partition: p}.String())
		}
	}
	return names
}

// title says what runs where.
func (a *application) title() string {
	where := "an embedded broker"
	if !a.embedded {
		where = strings.Join(a.brokers, ",")
	}
	return fmt.Sprintf("streamworker dev: %s on %s", a.name, where)
}
