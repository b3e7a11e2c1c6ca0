package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/leave"
)

// chaosFile counts in a second part, which reads what the first one writes in the same transactions. Sessions and
// transactions are short, so that they end under load by themselves now and then.
const chaosFile = `
app: %s
kafka: {brokers: ["%s"], heartbeat: 200ms, session_timeout: 2s, rebalance_timeout: 5s, transaction_timeout: 3s}
commit_interval: 30ms
guarantee: %s
threads: 2
learners: {acceptable_lag: 100}
streams:
  - name: words
    from: {topic: %s-in}
    steps:
      - rekey: value
      - count: {store: counts}
      - to: {topic: %s-out, value: int}
`

// answers are what brokers may say instead of what is expected. After a time-out and
// a lack of replicas the work is done all the same.
var answers = map[kmsg.Key][]*kerr.Error{
	kmsg.Produce: {
		kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.NotLeaderForPartition, kerr.InvalidProducerEpoch,
		kerr.OutOfOrderSequenceNumber, kerr.UnknownServerError, kerr.ConcurrentTransactions, kerr.TransactionAbortable, kerr.InvalidTxnState,
	},
	kmsg.TxnOffsetCommit: {
		kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.ConcurrentTransactions, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress,
		kerr.RequestTimedOut, kerr.UnknownServerError, kerr.InvalidProducerEpoch, kerr.OffsetMetadataTooLarge, kerr.TransactionAbortable,
	},
	kmsg.EndTxn: {kerr.ConcurrentTransactions, kerr.CoordinatorNotAvailable, kerr.UnknownServerError, kerr.ProducerFenced, kerr.InvalidTxnState},
	kmsg.AddOffsetsToTxn: {
		kerr.ConcurrentTransactions, kerr.NotCoordinator, kerr.UnknownServerError, kerr.ProducerFenced, kerr.InvalidTxnState,
	},
	kmsg.AddPartitionsToTxn: {kerr.ConcurrentTransactions, kerr.UnknownServerError, kerr.InvalidProducerEpoch},
	kmsg.InitProducerID:     {kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.UnknownServerError},
	kmsg.OffsetCommit:       {kerr.RebalanceInProgress, kerr.RequestTimedOut, kerr.IllegalGeneration, kerr.UnknownServerError},
	kmsg.OffsetFetch:        {kerr.UnstableOffsetCommit, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator},
	kmsg.ListOffsets:        {kerr.NotLeaderForPartition, kerr.UnknownServerError},
	kmsg.Fetch:              {kerr.NotLeaderForPartition, kerr.UnknownServerError},
}

// chaos makes things happen to three instances.
type chaos struct {
	*bench
	rnd     *rand.Rand
	cluster *kfake.Cluster
	names   []string
	workers map[string]*worker
	links   map[string]*link
	cut     map[string]bool
	dirs    int
}

// run starts the instance of a name on its own state.
func (c *chaos) run(name string) {
	l := newLink()
	c.dialer = l.dial
	c.workers[name], c.links[name], c.cut[name] = c.start(name), l, false
	c.dialer = nil
}

// stop ends the instance of a name, also one that is cut off.
func (c *chaos) stop(name string, how config.OnTerminate) {
	w := c.workers[name]
	w.Stop(how)
	c.mend(name)
	_ = c.end(w)
}

func (c *chaos) mend(name string) {
	if c.cut[name] {
		c.links[name].mend()
		c.cut[name] = false
	}
}

// step lets one thing happen.
func (c *chaos) step() {
	name := c.names[c.rnd.IntN(len(c.names))]
	switch n := c.rnd.IntN(20); {
	case n < 12:
		keys := slices.Sorted(func(yield func(kmsg.Key) bool) {
			for k := range answers {
				if !yield(k) {
					return
				}
			}
		})
		key := keys[c.rnd.IntN(len(keys))]
		if c.rnd.IntN(2) == 0 {
			key = []kmsg.Key{kmsg.Produce, kmsg.TxnOffsetCommit, kmsg.EndTxn}[c.rnd.IntN(3)]
		}
		answer := answers[key][c.rnd.IntN(len(answers[key]))]
		f := kfake.Fault{Keys: []kmsg.Key{key}, Err: answer, Count: 1 + c.rnd.IntN(3), When: func(req kmsg.Request) bool {
			p, ok := req.(*kmsg.ProduceRequest)
			return !ok || p.TransactionID != nil // not those of the generator
		}}
		if c.rnd.IntN(3) == 0 && key != kmsg.EndTxn && key != kmsg.InitProducerID {
			f.Partitions = []int32{c.rnd.Int32N(4)}
		}
		c.t.Logf("%s: %s, %d times, partitions %v", key.Name(), answer.Message, f.Count, f.Partitions)
		c.cluster.Fault(f)
	case n < 14:
		if c.cut[name] {
			c.t.Logf("%s is on the network again", name)
			c.mend(name)
		} else {
			c.t.Logf("%s is cut off", name)
			c.links[name].cut()
			c.cut[name] = true
		}
	case n < 16:
		how := []config.OnTerminate{config.Keep, config.Release}[c.rnd.IntN(2)]
		c.t.Logf("%s stops (%s) and starts again", name, how)
		c.stop(name, how)
		c.run(name)
	case n < 17:
		c.t.Logf("%s leaves", name)
		c.mend(name)
		if err := c.workers[name].Leave(context.Background(), leave.Default, "test"); err != nil {
			c.t.Logf("leave: %v", err)
		}
	case n < 18:
		// Nobody ends the former one: it finds out by itself.
		c.dirs++
		old, dir := c.workers[name], c.dir
		c.dir = filepath.Join(dir, "elsewhere-"+strconv.Itoa(c.dirs))
		c.t.Logf("%s is started elsewhere as well (cut off here: %v)", name, c.cut[name])
		l, cut := c.links[name], c.cut[name]
		time.Sleep(2 * time.Millisecond) // incarnations differ by their start
		c.run(name)
		c.dir = dir
		if cut {
			l.mend()
		}
		if err := c.end(old); err != nil && !errors.Is(err, ErrSuperseded) && !errors.Is(err, leave.ErrDrained) {
			c.t.Logf("the former %s ended with %v", name, err)
		}
		c.stop(name, config.Release) // its state is of no use to the others
		c.run(name)
	default:
		topic := []string{c.app + "-in", c.app + "-out", c.app + "-counts-changelog"}[c.rnd.IntN(3)]
		p, node := c.rnd.Int32N(4), c.rnd.Int32N(3)
		if err := c.cluster.MoveTopicPartition(topic, p, node); err == nil {
			c.t.Logf("%s partition %d moves to broker %d", topic, p, node)
		}
	}
	for _, name := range c.names { // drained, or superseded
		select {
		case err := <-c.workers[name].done:
			c.workers[name].done <- err
			c.t.Logf("%s ended with %v", name, err)
			c.mend(name)
			c.run(name)
		default:
		}
	}
}

// checkOnce waits until all is counted, and checks that each count of each key is there once and in order.
func (c *chaos) checkOnce() {
	c.t.Helper()
	out := c.awaitCounted()
	for k, n := range c.sent {
		if int64(len(out[k])) != n {
			c.t.Errorf("%s: %d counts, want %d", k, len(out[k]), n)
		}
		for i, v := range out[k] {
			if v != int64(i+1) {
				c.t.Errorf("%s: count %d is followed by %d", k, i, v)
				break
			}
		}
	}
}

// checkOnceLate does so with counts that come at commits.
func (c *chaos) checkOnceLate() {
	c.t.Helper()
	c.checkLate(c.awaitCounted())
}

// awaitCounted waits until all is counted, and returns all counts.
func (c *chaos) awaitCounted() (out map[string][]int64) {
	c.t.Helper()
	c.await("everything sent is counted", func() bool {
		out = c.outputs()
		for k, n := range c.sent {
			if v := out[k]; len(v) == 0 || v[len(v)-1] < n {
				return false
			}
		}
		return true
	})
	return out
}

// Whatever happens to instances and brokers, every record is counted exactly once. STREAMWORKER_TEST_SEED plays the
// schedule of a seed, STREAMWORKER_TEST_STEPS sets how much happens.
func TestExactlyOnceInChaos(t *testing.T) {
	seed, steps := uint64(time.Now().UnixNano()), 40
	if s := os.Getenv("STREAMWORKER_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	if s := os.Getenv("STREAMWORKER_TEST_STEPS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		steps = n
	}
	for _, version := range []int16{1, 2} {
		t.Run(fmt.Sprintf("transaction version %d", version), func(t *testing.T) {
			testExactlyOnceInChaos(t, version, seed, steps, chaosFile, (*chaos).checkOnce)
		})
	}
	t.Run("results at commits", func(t *testing.T) {
		testExactlyOnceInChaos(t, 2, seed, steps/2, lateFile(chaosFile), (*chaos).checkOnceLate)
	})
}

func testExactlyOnceInChaos(t *testing.T, version int16, seed uint64, steps int, file string, check func(*chaos)) {
	t.Logf("STREAMWORKER_TEST_SEED=%d", seed)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SleepOutOfOrder(), kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "500"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	var out io.Writer = io.Discard
	if f := os.Getenv("STREAMWORKER_TEST_LOG"); f != "" {
		file, err := os.Create(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		out = file
	}
	c := &chaos{
		bench: &bench{
			t: t, guarantee: config.ExactlyOnce, file: file, app: "chaos", brokers: cluster.ListenAddrs(), dir: t.TempDir(),
			sent: map[string]int64{}, mayAbort: true, log: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		},
		rnd: rand.New(rand.NewPCG(seed, 0)), cluster: cluster, names: []string{"a", "b", "c"},
		workers: map[string]*worker{}, links: map[string]*link{}, cut: map[string]bool{},
	}
	if c.client, err = kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.ProducerLinger(0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	if _, err := kadm.NewClient(c.client).CreateTopics(context.Background(), 4, 1, nil, c.app+"-in", c.app+"-out"); err != nil {
		t.Fatal(err)
	}
	feature := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	feature.Feature, feature.MaxVersionLevel, feature.UpgradeType = "transaction.version", version, 2 // a downgrade, if need be
	if version < 2 {
		feature.MaxVersionLevel = 0 // the cluster has no more than two kinds
	}
	added := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.AddOffsetsToTxn}, TxnID: transactionalID(c.app, "a"), Observe: true, Count: -1})
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.FeatureUpdates = append(req.FeatureUpdates, feature)
	if resp, err := req.RequestWith(context.Background(), c.client); err != nil || resp.ErrorCode != 0 {
		t.Fatalf("setting the transaction version: %v, %+v", err, resp)
	}
	for _, name := range c.names {
		c.run(name)
	}
	for _, name := range c.names {
		c.await(name+" takes part", func() bool { return c.workers[name].Status().Member != "" })
	}
	if _, _, err := c.client.ProducerID(context.Background()); err != nil { // the first fault may be one of these requests
		t.Fatal(err)
	}
	stop := c.generate()
	for range steps {
		c.step()
		time.Sleep(time.Duration(c.rnd.IntN(300)) * time.Millisecond)
	}
	stop()
	if seen := added.Hits() > 0; seen != (version < 2) {
		t.Errorf("the group is added to transactions: %v", seen)
	}
	for _, name := range c.names {
		c.mend(name)
	}
	check(c)

	// What the changelogs have is what was counted.
	for _, name := range c.names {
		c.stop(name, config.Release)
	}
	c.dir = t.TempDir()
	c.run("a")
	c.generate()()
	check(c)
	t.Logf("%d records", c.total())
}

// generate sends words until the function that it returns is called, and at least one of each.
func (c *chaos) generate() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			for range 15 {
				w := fmt.Sprintf("word-%d", c.total()%37)
				c.sent[w]++
				c.client.Produce(context.Background(), &kgo.Record{Topic: c.app + "-in", Key: []byte(w), Value: []byte(w)}, func(_ *kgo.Record, err error) {
					if err != nil {
						c.t.Errorf("sending: %v", err)
					}
				})
			}
			if err := c.client.Flush(context.Background()); err != nil {
				c.t.Error(err)
			}
			select {
			case <-quit:
				if i >= 3 {
					return
				}
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// total is the number of records sent. It is the generator's until that has stopped.
func (c *chaos) total() (n int64) {
	for _, k := range c.sent {
		n += k
	}
	return n
}
