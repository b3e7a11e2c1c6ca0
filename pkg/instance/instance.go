package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/leave"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks"
)

var (
	// ErrSuperseded is returned by Run when another process has joined under the same instance id.
	ErrSuperseded = errors.New("another process runs under the same instance id and was started later: this one gives way; give each instance an id of its own")
	// ErrState is returned by Run when the state on disk fails in a way that the process cannot go on from.
	ErrState = errors.New("the local state can no longer be written; a restart replays what is missing")
	// ErrChanged is returned by Run when the topology was changed in a way that what is there does not allow: rows of stores, or
	// instances that run.
	ErrChanged = errors.New("the topology was changed, and cannot go on from what is there")
)

// Bounds of the last steps of an instance that stops.
const (
	leaveTimeout  = time.Second
	farewellLimit = 500 * time.Millisecond
)

// Instance is one streamworker. Run may be called once.
type Instance struct {
	cfg       *config.Config
	opts      Options
	connector *kafka.Connector
	log       *slog.Logger
	id        string
	address   string // URL of the admin side, for others

	recent   *recent
	disk     atomic.Pointer[disk] // nil: not looked at yet
	started  time.Time
	random   uint64
	parts    atomic.Pointer[parts] // set once the instance can run tasks
	stopping atomic.Bool

	stopOnce sync.Once
	stop     chan struct{} // closed by Stop
	how      config.OnTerminate
}

// parts are what a running instance is made of.
type parts struct {
	engine       *state.Engine
	clients      *clients
	coord        *group.Coordinator
	transactions *transactions // nil under at least once
	membership   *group.Membership
	reader       *state.Reader
	manager      *tasks.Manager
	bus          *control.Bus
	evolution    *evolution
	racks        *inputRacks // nil: this instance does not know its own
	leave        *leave.Controller
	journal      *leave.Journal

	stopTasks    context.CancelFunc
	tasksStopped chan struct{}
}

// New returns an instance that has touched nothing yet.
func New(cfg *config.Config, opts Options) *Instance {
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	id := instanceID(cfg)
	log = log.With("app", cfg.App, "instance", id)
	return &Instance{
		cfg: cfg, opts: opts, connector: kafka.NewConnector(cfg.Kafka.Connection, log.With("component", "kafka")), log: log, id: id,
		recent: &recent{clientID: cfg.Kafka.ClientID}, started: time.Now(), random: randomBits(), stop: make(chan struct{}),
	}
}

// Observe has e called too. It comes before Run.
func (i *Instance) Observe(e tasks.Events) { i.opts.Events = tasks.Join(i.opts.Events, e) }

// Advertise has others told where they find this instance's admin side, by its URL. It comes before Run.
func (i *Instance) Advertise(url string) { i.address = url }

// ID is the instance id, configured or chosen at the start.
func (i *Instance) ID() string { return i.id }

func (i *Instance) incarnation() assign.Incarnation {
	if p := i.parts.Load(); p != nil {
		return p.journal.Incarnation()
	}
	return assign.Incarnation{StartMs: i.started.UnixMilli(), Random: i.random}
}

// Stop ends Run: Keep commits and stays a member of the group until a restart or the end of the session,
// Release leaves the group as well. The first call decides.
func (i *Instance) Stop(how config.OnTerminate) {
	i.stopOnce.Do(func() {
		i.how = how
		i.stopping.Store(true)
		close(i.stop)
	})
}

// Drain makes the instance hand its tasks over and then end, as a leave does; by says who asks. It has
// no effect before the instance runs; false says so.
func (i *Instance) Drain(by string) bool {
	p := i.parts.Load()
	if p == nil {
		return false
	}
	p.leave.Drain(by)
	return true
}

// Leave marks the instance as leaving, Cancel takes the mark back.
func (i *Instance) Leave(ctx context.Context, d leave.Deadline, by string) error {
	p := i.parts.Load()
	if p == nil {
		return errors.New("the instance is still starting: try again in a moment")
	}
	return p.leave.Leave(ctx, d, by)
}

// Cancel takes a leaving mark back.
func (i *Instance) Cancel(ctx context.Context) error {
	p := i.parts.Load()
	if p == nil {
		return errors.New("the instance is still starting: try again in a moment")
	}
	return p.leave.Cancel(ctx)
}

// Run runs the instance until Stop, until it has left the group (leave.ErrDrained, leave.ErrTimedOut,
// leave.ErrNow), or until it cannot go on. The end of ctx is a Stop as on_terminate says, where drain is
// taken as release.
func (i *Instance) Run(ctx context.Context) error {
	how := i.cfg.OnTerminate
	if how == config.Drain {
		how = config.Release
	}
	defer context.AfterFunc(ctx, func() { i.Stop(how) })()
	starting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		select {
		case <-i.stop:
			cancel()
		case <-starting.Done():
		}
	}()
	fatal := make(chan error, 1)
	p, err := i.assemble(starting, fatal)
	if err != nil {
		if i.stopping.Load() && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	i.parts.Store(p)
	err = i.serve(context.WithoutCancel(ctx), p, fatal)
	if !errors.Is(err, ErrState) { // its stores are in no condition to be closed
		p.close(i.log)
	}
	return err
}

// assemble opens the state directory, checks the cluster's topics and builds the parts.
func (i *Instance) assemble(ctx context.Context, fatal chan error) (_ *parts, err error) {
	p := &parts{tasksStopped: make(chan struct{})}
	defer func() {
		if err != nil {
			p.close(i.log)
		}
	}()
	c := i.cfg
	if err := os.MkdirAll(c.State.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("state directory: %w; set state.dir or --state-dir to a directory that can be written", err)
	}
	p.engine, err = state.NewEngine(state.Config{
		Dir: c.State.Dir, BlockCacheBytes: c.State.BlockCache, MemtableBytes: c.State.Memtables, RowCacheBytes: c.State.RowCache,
		MaxOpenFiles: c.State.MaxOpenFiles, Compactions: c.State.Compactions, Logger: i.log, FS: i.opts.StateFS,
		Events: state.Events{Fatal: func(task string, err error) {
			select {
			case fatal <- fmt.Errorf("%w: task %s: %w", ErrState, task, err):
			default:
			}
			select {} // Pebble must not go on; the process ends through fatal
		}},
	})
	if err != nil {
		return nil, err
	}
	if p.journal, err = leave.OpenJournal(c.State.Dir, i.started, i.random, i.log); err != nil {
		return nil, err
	}
	if p.clients, err = i.newClients(); err != nil {
		return nil, err
	}
	if c.Kafka.SecretInClear() {
		i.log.Warn("the password or token crosses the network in clear: set kafka.tls, or use SCRAM", "component", "kafka")
	}
	if c.SchemaRegistry.SecretInClear() {
		i.log.Warn("the password crosses the network in clear: use https in schema_registry.url", "component", "schema_registry")
	}
	p.bus = control.NewBus(p.clients.control, c.App, i.log)
	lay, err := i.consult(ctx, p)
	if err != nil {
		return nil, err
	}
	if c.Rack != "" {
		p.racks = &inputRacks{admin: p.clients.admin, log: i.log}
		for _, s := range lay.group {
			p.racks.topics = append(p.racks.topics, s.Topics...)
		}
		p.racks.refresh(ctx)
	}
	return p, i.connect(p, lay)
}

// connect builds the parts that know each other.
func (i *Instance) connect(p *parts, lay *layout) (err error) {
	c := i.cfg
	var upgradeFrom []string
	if c.RebalanceMode == config.Upgrading {
		upgradeFrom = c.UpgradeFrom
	}
	if p.coord, err = group.NewCoordinator(c.Kafka.Group, i.kafkaOptions("-coordinator")...); err != nil {
		return err
	}
	p.reader = state.NewReader(p.clients.changelogs, state.ReaderConfig{BytesPerSecond: c.Learners.Bandwidth, Logger: i.log})
	inc := p.journal.Incarnation()
	member := &member{}
	var transactions tasks.Transactions
	if p.transactions != nil {
		p.transactions.fencing.expired = member.Expired
		transactions = p.transactions
	}
	p.manager = tasks.NewManager(tasks.Config{
		Identity: tasks.Identity{
			Instance: i.id, Incarnation: inc, Capacity: c.Capacity, Labels: c.Labels, Rack: c.Rack, ConfigHash: lay.hash,
		},
		Subtopologies: lay.tasks, Globals: lay.globals, Engine: p.engine, Reader: p.reader, Input: p.clients.input,
		Offsets: offsets{p.coord}, Logs: logs{p.clients.admin}, Group: member,
		NewProducer: func() (*kgo.Client, error) { return i.newProducer(member, lay.limits) }, Transactions: transactions, Limits: lay.limits,
		Events: logEvents(i.log, tasks.Join(i.recent.events(), i.opts.Events)), Logger: i.log.With("component", "tasks"),
		Threads: c.Threads, CommitInterval: c.CommitInterval, AcceptableLag: c.Learners.AcceptableLag, StuckAfter: c.Learners.StuckAfter, Stable: c.Learners.Mode == config.Stable,
		Yields: group.Yields(upgradeFrom),
	})
	var racksOf func(topic string, partition int32) []string
	if p.racks != nil {
		racksOf = p.racks.of
	}
	p.membership, err = group.NewMembership(group.Config{
		Options: i.kafkaOptions(""), Group: c.Kafka.Group, ClientID: c.Kafka.ClientID + "-" + i.id,
		Session: c.Kafka.SessionTimeout, Heartbeat: c.Kafka.Heartbeat, RebalanceTimeout: c.Kafka.RebalanceTimeout,
		Subtopologies: lay.group,
		Policy:        assign.Policy{BalancingFactor: c.BalancingFactor, MaxLearners: c.Learners.MaxLearners, Standbys: c.Standbys},
		InputRacks:    racksOf,
		UpgradeFrom:   upgradeFrom,
		Coordinator:   p.coord, FormerMemberFile: filepath.Join(c.State.Dir, "member"), Logger: i.log,
		JoinWaiting: func() { go i.sayHello(p) },
	}, p.manager)
	if err != nil {
		return err
	}
	member.membership.Store(p.membership)
	p.leave = leave.NewController(leave.Config{
		Journal: p.journal, Timeout: c.ScaleDownTimeout, Logger: i.log,
		Marks: marks{bus: p.bus, id: i.id, incarnation: inc}, Member: p, Tasks: p,
	})
	return nil
}
