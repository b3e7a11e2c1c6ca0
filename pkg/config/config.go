package config

import (
	"time"

	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/registry"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// Config is a checked configuration: every field has its final value.
type Config struct {
	Path     string // of the file
	App      string
	Topology *topology.Topology

	Kafka          Kafka
	SchemaRegistry registry.Settings // without URLs: none
	InternalTopics InternalTopics
	Guarantee      Guarantee

	InstanceID string            // "": the instance picks a name at each start
	Labels     map[string]string // for selectors
	Capacity   uint32            // share of the tasks relative to other instances; at least 1
	Rack       string

	State          State
	Threads        int // tasks processed at once
	CommitInterval time.Duration

	Learners         Learners
	Standbys         int           // copies per stateful task for failover only
	BalancingFactor  int           // least spread of loads at which tasks move; at least 2
	ScaleDownTimeout time.Duration // 0: none
	OnTerminate      OnTerminate
	RebalanceMode    RebalanceMode
	UpgradeFrom      []string // protocols of plain consumers, of which the group has or gets some under Upgrading

	Admin     Admin
	Telemetry Telemetry
	Log       Log

	fields  []*yamlnode.Field // as they were read
	streams map[string]any    // streams and tables, as the file has them
}

// Kafka says how to reach the cluster and how to be a member of the group.
type Kafka struct {
	kafka.Connection
	Group            string // by default the app's name
	ClientID         string // by default the app's name
	Heartbeat        time.Duration
	SessionTimeout   time.Duration
	RebalanceTimeout time.Duration
	// MaxMessageBytes is the largest batch that is written, before compression, and so the largest record.
	MaxMessageBytes int
	// TransactionTimeout is how long a transaction may take, and how long one is waited for whose writer
	// has died and cannot be fenced. Only under exactly once.
	TransactionTimeout time.Duration
}

// InternalTopics says how changelogs, repartition topics and the control topic are made.
type InternalTopics struct {
	Create            bool  // false: the user creates them, they are only checked
	Replication       int16 // -1: the broker's default
	MinInsyncReplicas int   // 0: the broker's default
}

// State bounds what all tasks of the instance take together.
type State struct {
	Dir          string
	BlockCache   int64 // bytes
	Memtables    int64 // bytes
	RowCache     int64 // bytes
	MaxOpenFiles int
	Compactions  int // running at once
}

// Learners says how tasks are warmed up elsewhere.
type Learners struct {
	Mode          LearnerMode
	AcceptableLag int64         // records behind the changelog's end within which a learner is ready
	MaxLearners   int           // at work per instance; 0: no bound
	StuckAfter    time.Duration // without progress a copy is somebody else's to have
	Bandwidth     int64         // bytes per second for learners and standbys of an instance; 0: no bound
}

// Admin says where metrics, health and the dashboard are served over TCP, and to whom.
type Admin struct {
	Listen       string       // host:port; "": nowhere
	Advertise    string       // host:port at which others reach it; "": as Listen says
	Token        kafka.Secret // what clients must present; "": that in TokenFile, if any
	TokenFile    string
	TLS          AdminTLS
	AllowActions bool // the dashboard may let instances leave
}

// AdminTLS are the files of the listener's certificate; empty paths: plain HTTP.
type AdminTLS struct {
	Cert, Key string
	ClientCA  string // whose certificates clients must present
}

// Telemetry says what is told to others than Prometheus and the log.
type Telemetry struct {
	Traces Traces
}

// Traces says where spans go.
type Traces struct {
	Endpoint    string // OTLP over HTTP; "": as the standard OTEL_ variables say, by default nowhere
	CommitEvery int    // one of so many acknowledged commits is traced; 0: none
}

// Log says what is logged and how.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}

// Guarantee is what holds for results after a failure.
type Guarantee string

// The guarantees.
const (
	AtLeastOnce Guarantee = "at_least_once"
	ExactlyOnce Guarantee = "exactly_once"
)

// LearnerMode says when a ready learner asks for a rebalance.
type LearnerMode string

// The modes: as soon as one task is ready, or once all learners of the instance are.
const (
	Eager  LearnerMode = "eager"
	Stable LearnerMode = "stable"
)

// OnTerminate says what SIGTERM does.
type OnTerminate string

// What SIGTERM does: commit and stay a member until the session ends, so that a restart gets its tasks back; commit and leave
// the group; or drain as the leave command does.
const (
	Keep    OnTerminate = "keep"
	Release OnTerminate = "release"
	Drain   OnTerminate = "drain"
)

// Overrides are settings from the command line; zero values leave the file's.
type Overrides struct {
	Brokers    []string
	InstanceID string
	StateDir   string
	Labels     map[string]string // added to the file's
	Offline    bool              // Kafka is not used: the file need not name brokers
	CheckFiles bool              // read the files that the configuration names, and report what is wrong with them
	// Variables are the names of all environment variables; those that look like a setting and are none are mistakes.
	Variables []string
	// Prefix is put before the names of the application, its group and all its topics, so that a trial has nothing in
	// common with the application itself.
	Prefix string
	// Program says what to compute, in place of the file's streams and tables; nil: the file does.
	Program *topology.Program
}
