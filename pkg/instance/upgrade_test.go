package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/leave"
)

// copyFile is a job that plain consumers can do as well.
const copyFile = `
app: %s
kafka: {brokers: ["%s"], heartbeat: 200ms, session_timeout: 6s, rebalance_timeout: 20s}
commit_interval: 50ms
guarantee: %s
threads: 2
streams:
  - {name: events, from: {topic: %s-in}, steps: [to: {topic: %s-out}]}
`

func upgrading(protocol string) string {
	return copyFile + fmt.Sprintf("rebalance_mode: upgrading\nupgrade_from: [%s]\n", protocol)
}

// plain is a consumer that copies each record, and commits after each batch that it has written.
type plain struct {
	cl   *kgo.Client
	done chan struct{}
	stop context.CancelFunc

	mu  sync.Mutex
	has map[int32]bool
}

func (b *bench) plain(id string, protocol kgo.GroupBalancer) *plain {
	b.t.Helper()
	p := &plain{done: make(chan struct{}), has: map[int32]bool{}}
	note := func(has bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, list := range parts {
				for _, n := range list {
					p.has[n] = has
				}
			}
		}
	}
	var err error
	p.cl, err = kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ClientID(id), kgo.ConsumerGroup(b.app), kgo.Balancers(protocol),
		kgo.ConsumeTopics(b.app+"-in"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.HeartbeatInterval(200*time.Millisecond), kgo.FetchMaxWait(50*time.Millisecond), kgo.ProducerLinger(0),
		kgo.OnPartitionsAssigned(note(true)), kgo.OnPartitionsRevoked(note(false)), kgo.OnPartitionsLost(note(false)))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		defer close(p.done)
		for ctx.Err() == nil {
			fetches := p.cl.PollFetches(ctx)
			var out []*kgo.Record
			fetches.EachRecord(func(r *kgo.Record) { out = append(out, &kgo.Record{Topic: b.app + "-out", Key: r.Key, Value: r.Value}) })
			if len(out) > 0 {
				if err := p.cl.ProduceSync(context.Background(), out...).FirstErr(); err != nil {
					b.t.Errorf("%s cannot write: %v", id, err)
				}
				if err := p.cl.CommitUncommittedOffsets(context.Background()); err != nil {
					b.t.Errorf("%s cannot commit: %v", id, err)
				}
			}
			p.cl.AllowRebalance()
		}
	}()
	b.t.Cleanup(p.close)
	return p
}

func (p *plain) close() {
	p.stop()
	<-p.done
	p.cl.CloseAllowingRebalance()
}

func (p *plain) partitions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, has := range p.has {
		if has {
			n++
		}
	}
	return n
}

// flow sends numbered records until the returned function is called, which tells how many there are.
func (b *bench) flow() (stop func() int) {
	ended, n := make(chan struct{}), make(chan int)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			b.client.Produce(context.Background(), &kgo.Record{Topic: b.app + "-in", Key: fmt.Appendf(nil, "%06d", i), Value: []byte("x")}, nil)
			select {
			case <-ended:
				_ = b.client.Flush(context.Background())
				n <- i + 1
				return
			case <-tick.C:
			}
		}
	}()
	return func() int { close(ended); return <-n }
}

// copied reads the output until n different records are there, and says how often each one is. A moment later nothing more
// may have come.
func (b *bench) copied(n int) map[string]int {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics(b.app+"-out"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	got := map[string]int{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for len(got) < n {
		if ctx.Err() != nil {
			b.t.Fatalf("%d of %d records were copied", len(got), n)
		}
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got[string(r.Key)]++ })
	}
	ctx, cancel = context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	for ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got[string(r.Key)]++ })
	}
	return got
}

func (b *bench) exactlyCopied(n int) {
	b.t.Helper()
	twice := 0
	for _, times := range b.copied(n) {
		if times > 1 {
			twice++
		}
	}
	if twice > 0 {
		b.t.Errorf("%d of %d records were copied more than once", twice, n)
	}
}

func (b *bench) speaks() string {
	groups, err := kadm.NewClient(b.client).DescribeGroups(context.Background(), b.app)
	if err != nil || groups[b.app].State != "Stable" {
		return ""
	}
	return groups[b.app].Protocol
}

// Three plain consumers are replaced by instances one by one, these by instances of the incremental mode, and all of it is
// taken back the same way, under load: no record is lost or doubled.
func TestUpgradeAndBack(t *testing.T) {
	for balancer, guarantee := range map[kgo.GroupBalancer]config.Guarantee{
		kgo.RangeBalancer(): config.ExactlyOnce, kgo.CooperativeStickyBalancer(): config.AtLeastOnce,
	} {
		protocol := balancer.ProtocolName()
		t.Run(protocol, func(t *testing.T) { upgradeAndBack(t, newBench(t, guarantee, 6), balancer) })
	}
}

func upgradeAndBack(t *testing.T, b *bench, balancer kgo.GroupBalancer) {
	protocol := balancer.ProtocolName()
	old := []*plain{b.plain("old-0", balancer), b.plain("old-1", balancer), b.plain("old-2", balancer)}
	b.await("the consumers share the partitions", func() bool {
		return old[0].partitions() == 2 && old[1].partitions() == 2 && old[2].partitions() == 2
	})
	stop := b.flow()
	ids := []string{"a", "b", "c"}
	workers := make([]*worker, 3)
	roll := func(mode, file, speaks string, end func(i int)) {
		b.file = file
		for i, id := range ids {
			end(i)
			workers[i] = b.start(id)
			b.await("2 tasks of "+id+" run", func() bool {
				return len(workers[i].Status().Active) == 2 && workers[i].Ready()
			})
			if i < 2 {
				b.await(mode+" "+id+": the group speaks "+speaks, func() bool { return b.speaks() == speaks })
			}
		}
		b.await("the group speaks streamworker", func() bool { return b.speaks() == group.ProtocolName })
	}
	stopped := func(i int) {
		workers[i].Stop(config.Release)
		if err := b.end(workers[i]); err != nil {
			t.Error(err)
		}
	}
	roll("upgrading", upgrading(protocol), protocol, func(i int) { old[i].close() })
	roll("incremental", copyFile, group.ProtocolName, stopped)
	roll("back to upgrading", upgrading(protocol), group.ProtocolName, stopped)
	for i := range ids {
		stopped(i)
		old[i] = b.plain(fmt.Sprintf("again-%d", i), balancer)
		b.await("the consumer has its share", func() bool { return old[i].partitions() == 2 && b.speaks() == protocol })
	}
	n := stop()
	b.exactlyCopied(n)
	for _, w := range workers {
		if f := w.Totals().Failures; f > 0 {
			t.Errorf("%d failures", f)
		}
	}
}

// An instance that offers only our protocol is not admitted beside plain consumers, and says what to do.
func TestIncrementalBesidePlainConsumers(t *testing.T) {
	b := newBench(t, config.AtLeastOnce, 2)
	old := b.plain("old", kgo.RangeBalancer())
	b.await("the consumer has the partitions", func() bool { return old.partitions() == 2 })
	b.file = copyFile
	err := b.end(b.start("a"))
	if err == nil || !strings.Contains(err.Error(), "set rebalance_mode: upgrading and upgrade_from to that protocol") {
		t.Errorf("ended with %v", err)
	}
}

// An instance that is told to leave beside plain consumers gives its tasks to the others, and ends.
func TestLeaveBesidePlainConsumers(t *testing.T) {
	b := newBench(t, config.AtLeastOnce, 6)
	b.file = upgrading("cooperative-sticky")
	old := b.plain("old", kgo.CooperativeStickyBalancer())
	stop := b.flow()
	a, c := b.start("a"), b.start("c")
	b.awaitActive(a, 2)
	b.awaitActive(c, 2)
	if err := a.Leave(context.Background(), leave.Never, "test"); err != nil {
		t.Fatal(err)
	}
	if err := b.end(a); !errors.Is(err, leave.ErrDrained) {
		t.Errorf("ended with %v", err)
	}
	b.awaitActive(c, 3)
	b.await("the consumer has the other half", func() bool { return old.partitions() == 3 })
	b.exactlyCopied(stop())
}
