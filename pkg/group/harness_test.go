package group

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	goleak.VerifyTestMain(m)
}

// patience bounds what a test waits for; it is long, as machines may be busy.
var patience = time.Minute

// cluster is a Kafka to test against.
type cluster struct {
	t       *testing.T
	brokers []string
	fake    *kfake.Cluster // nil: a real one
	admin   *kadm.Client
}

// onKafka runs the test on a fake cluster and, if STREAMWORKER_TEST_BROKERS names one, on a real one.
func onKafka(t *testing.T, test func(t *testing.T, k *cluster)) {
	t.Run("fake", func(t *testing.T) { test(t, fakeCluster(t)) })
	t.Run("kafka", func(t *testing.T) {
		brokers := os.Getenv("STREAMWORKER_TEST_BROKERS")
		if brokers == "" {
			t.Skip("STREAMWORKER_TEST_BROKERS is not set")
		}
		test(t, newCluster(t, strings.Split(brokers, ","), nil))
	})
}

func fakeCluster(t *testing.T) *cluster {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{
		"group.min.session.timeout.ms": "100",
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return newCluster(t, fake.ListenAddrs(), fake)
}

func newCluster(t *testing.T, brokers []string, fake *kfake.Cluster) *cluster {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	k := &cluster{t: t, brokers: brokers, fake: fake, admin: kadm.NewClient(client)}
	t.Cleanup(client.Close)
	return k
}

func (k *cluster) name() string { return "group-" + strings.ToLower(rand.Text()[:10]) }

// topic creates one that is deleted after the test.
func (k *cluster) topic(partitions int32) string {
	k.t.Helper()
	name := k.name()
	if _, err := k.admin.CreateTopic(k.t.Context(), partitions, 1, nil, name); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := k.admin.DeleteTopics(ctx, name); err != nil {
			k.t.Error(err)
		}
	})
	return name
}

func (k *cluster) coordinator(group string, opts ...kgo.Opt) *Coordinator {
	k.t.Helper()
	c, err := NewCoordinator(group, append([]kgo.Opt{kgo.SeedBrokers(k.brokers...)}, opts...)...)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(c.Close)
	return c
}

// describe returns the group as Kafka's tools see it.
func (k *cluster) describe(group string) kadm.DescribedGroup {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var described kadm.DescribedGroup
	eventually(k.t, "the group can be described", func() bool {
		groups, err := k.admin.DescribeGroups(ctx, group)
		described = groups[group]
		return err == nil && described.Err == nil
	})
	return described
}

// members returns the ids of the group's members.
func (k *cluster) members(group string) []string {
	var ids []string
	for _, m := range k.describe(group).Members {
		ids = append(ids, m.MemberID)
	}
	return ids
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

// instance is a member whose tasks are make-believe: what it is told it does at once.
type instance struct {
	t     *testing.T
	k     *cluster
	cfg   Config
	m     *Membership
	stop  context.CancelFunc
	ended chan error

	mu       sync.Mutex
	edit     func(*assign.Report) // what the test wants in the report
	owned    map[assign.TaskID]bool
	learning map[assign.TaskID]bool
	wanted   int // counts what the test changed
	reported int // wanted at the last report
	planned  int // reported at the last plan
	memberID string
	plans    []int32 // generations
	lost     []error
}

func (k *cluster) newInstance(cfg Config, name string) *instance {
	k.t.Helper()
	if cfg.Coordinator == nil {
		cfg.Coordinator = k.coordinator(cfg.Group)
	}
	if cfg.Options == nil {
		cfg.Options = []kgo.Opt{kgo.SeedBrokers(k.brokers...)}
	}
	cfg.ClientID = name
	cfg.Logger = slog.New(slog.NewTextHandler(k.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("instance", name)
	in := &instance{t: k.t, k: k, cfg: cfg, edit: func(r *assign.Report) { r.Instance = name }}
	m, err := NewMembership(cfg, in)
	if err != nil {
		k.t.Fatal(err)
	}
	in.m, in.ended = m, make(chan error, 1)
	in.reset()
	return in
}

func (in *instance) reset() {
	in.owned, in.learning = map[assign.TaskID]bool{}, map[assign.TaskID]bool{}
}

// start runs the instance until halt or the end of the test.
func (k *cluster) start(cfg Config, name string) *instance {
	k.t.Helper()
	in := k.newInstance(cfg, name)
	in.run()
	return in
}

func (in *instance) run() {
	ctx, stop := context.WithCancel(context.Background())
	in.stop = stop
	go func() { in.ended <- in.m.Run(ctx) }()
	in.t.Cleanup(in.halt)
}

// halt ends the instance without leaving the group.
func (in *instance) halt() {
	in.stop()
	select {
	case err := <-in.ended:
		if err != nil {
			in.t.Errorf("Run: %v", err)
		}
		in.ended <- nil
	case <-time.After(patience):
		in.t.Fatal("Run does not end")
	}
}

func (in *instance) Report() assign.Report {
	in.mu.Lock()
	defer in.mu.Unlock()
	r := assign.Report{Capacity: 1, Owned: slices.Collect(maps.Keys(in.owned))}
	for t := range in.learning {
		r.Learning = append(r.Learning, assign.Copy{Task: t})
	}
	in.edit(&r)
	in.reported = in.wanted
	return r
}

func (in *instance) Plan(memberID string, generation int32, p assign.MemberPlan) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.memberID, in.plans, in.planned = memberID, append(in.plans, generation), in.reported
	in.reset()
	for _, t := range p.Own {
		in.owned[t] = true
	}
	for _, h := range p.Take {
		in.owned[h.Task] = true
	}
	for _, t := range p.Learn {
		in.learning[t] = true
	}
}

// Assigned takes the tasks of a round of plain consumers.
func (in *instance) Assigned(memberID string, generation int32, tasks []assign.TaskID) {
	in.Plan(memberID, generation, assign.MemberPlan{Own: tasks})
}

func (in *instance) Revoke(which func(assign.TaskID) bool, done func()) {
	in.mu.Lock()
	maps.DeleteFunc(in.owned, func(t assign.TaskID, _ bool) bool { return which(t) })
	in.mu.Unlock()
	done()
}

func (in *instance) Lost(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lost = append(in.lost, err)
	in.reset()
}

// change makes the next report differ and forces a round.
func (in *instance) change(edit func(*assign.Report)) {
	in.mu.Lock()
	before := in.edit
	in.edit = func(r *assign.Report) { before(r); edit(r) }
	in.wanted++
	in.mu.Unlock()
	in.m.ForceRound()
}

func (in *instance) id() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.memberID
}

func (in *instance) tasks() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.owned)
}

// seen returns how many of the test's changes are in a plan.
func (in *instance) seen() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.planned
}

func (in *instance) generations() []int32 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.plans)
}

func (in *instance) losses() []error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.lost)
}

// settled says whether each of n tasks has one runner among the instances, and each has a plan of the same
// round.
func settled(n int, all ...*instance) bool {
	total := 0
	var last []int32
	for _, in := range all {
		total += in.tasks()
		g := in.generations()
		if len(g) == 0 {
			return false
		}
		last = append(last, g[len(g)-1])
	}
	slices.Sort(last)
	return total == n && last[0] == last[len(last)-1]
}

// gate is a dialer whose connections can be made to hang, and to break with the answer still to come.
type gate struct {
	mu     sync.Mutex
	shut   chan struct{} // closed when opened again; nil: open
	breaks bool          // break a connection instead of delivering what it reads
}

type gatedConn struct {
	net.Conn
	g *gate
}

func (g *gate) dialer() kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
		g.wait()
		conn, err := (&net.Dialer{}).DialContext(ctx, network, host)
		if err != nil {
			return nil, err
		}
		return &gatedConn{conn, g}, nil
	})
}

func (g *gate) wait() {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

func (g *gate) setBreaks(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.breaks = on
}

func (c *gatedConn) Write(b []byte) (int, error) {
	c.g.wait()
	return c.Conn.Write(b)
}

func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.g.mu.Lock()
	breaks := c.g.breaks
	c.g.mu.Unlock()
	if breaks && err == nil {
		c.Close()
		return 0, fmt.Errorf("test: %w", net.ErrClosed)
	}
	return n, err
}
