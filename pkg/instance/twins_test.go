package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/topology"
)

// twins are two applications that do the same with the same input: one instance that nothing happens to, and several that
// all kinds of things happen to.
type twins struct {
	*bench   // the one that things happen to
	calm     *bench
	cluster  *kfake.Cluster // nil: on a real Kafka
	suffix   string         // of the names of topics and applications: a broker may have those of other runs
	rnd      *rand.Rand
	topology *topology.Topology // of the disturbed one
	reads    map[string]bool    // input topics
	workers  map[string]*worker
	plugs    map[string]context.CancelFunc // of the networks of instances
	disks    map[string]*vfs.MemFS
}

const twinPartitions = 3

// inputNames are the topics that files of twins read.
var inputNames = regexp.MustCompile(`topic: (in-\w+)`)

// input names an input topic of this run.
func (w *twins) input(name string) string { return name + "-" + w.suffix }

// newTwins makes them, of a file or of a program that the file goes with, on a fake cluster or, if brokers are given, on a real Kafka, where sessions take longer to end.
func newTwins(t *testing.T, file string, program func(app string, input func(string) string) *topology.Program, seed uint64, brokers []string) *twins {
	t.Helper()
	w := &twins{
		suffix: strconv.FormatInt(time.Now().UnixNano(), 36), rnd: rand.New(rand.NewPCG(seed, 0)),
		reads: map[string]bool{}, workers: map[string]*worker{}, plugs: map[string]context.CancelFunc{}, disks: map[string]*vfs.MemFS{},
	}
	file = inputNames.ReplaceAllString(file, "topic: ${1}-"+w.suffix)
	calmly := strings.NewReplacer("session_timeout: 2s", "session_timeout: 30s", "_timeout: 5s", "_timeout: 60s", "_timeout: 3s", "_timeout: 60s").Replace(file)
	if len(brokers) > 0 {
		file = strings.Replace(file, "session_timeout: 2s", "session_timeout: 6s", 1)
	} else {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder(), kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "500"}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		w.cluster, brokers = cluster, cluster.ListenAddrs()
	}
	var out io.Writer = io.Discard
	if f := os.Getenv("STREAMWORKER_TEST_LOG"); f != "" {
		file, err := os.Create(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		out = file
	}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	app := func(name, file string) *bench {
		return &bench{t: t, guarantee: config.ExactlyOnce, file: file, app: name + "-" + w.suffix, brokers: brokers, dir: t.TempDir(), client: cl,
			sent: map[string]int64{}, log: log.With("app", name)}
	}
	w.bench, w.calm = app("rough", file), app("calm", calmly)
	if program != nil {
		for _, b := range []*bench{w.bench, w.calm} {
			b.program = func(app string) *topology.Program { return program(app, w.input) }
		}
	}
	w.mayAbort, w.calm.mayAbort = true, true // also a slow machine can let transactions run out
	w.calm.disk = vfs.NewMem()
	topics := w.parse(w.calm).topics
	parsed := w.parse(w.bench)
	w.topology = parsed.topology
	inputs := parsed.inputs
	for _, g := range parsed.topology.Globals {
		inputs = append(inputs, g.Topic)
	}
	for _, topic := range inputs {
		w.reads[topic] = true
	}
	topics = slices.Concat(topics, parsed.topics, inputs)
	forever := "-1" // the records are of 1970
	if _, err := kadm.NewClient(cl).CreateTopics(context.Background(), twinPartitions, 1, map[string]*string{"retention.ms": &forever}, topics...); err != nil {
		t.Fatal(err)
	}
	return w
}

type parsedTwin struct {
	topology       *topology.Topology
	inputs, topics []string // topics are those of results
}

func (w *twins) parse(b *bench) (p parsedTwin) {
	b.t.Helper()
	cfg, err := config.Parse("operators.yaml", []byte(fmt.Sprintf(b.file, b.app, b.brokers[0], b.guarantee)), nil, b.overrides(""))
	if err != nil {
		b.t.Fatal(err)
	}
	p.topology = cfg.Topology
	for _, s := range cfg.Topology.Subtopologies {
		for _, in := range s.Sources {
			if !in.Internal && !slices.Contains(p.inputs, in.Topic) {
				p.inputs = append(p.inputs, in.Topic)
			}
		}
		for _, to := range s.Sinks {
			if !to.Internal {
				p.topics = append(p.topics, to.Topic)
			}
		}
	}
	return p
}

// run starts the instance of a name on the disk that it had, or on an empty one.
func (w *twins) run(name string) {
	if w.disks[name] == nil {
		w.disks[name] = vfs.NewCrashableMem()
	}
	ctx, pull := context.WithCancel(context.Background())
	w.t.Cleanup(pull)
	w.disk, w.plugs[name] = w.disks[name], pull
	w.dialer = func(dialing context.Context, network, host string) (net.Conn, error) {
		if ctx.Err() != nil {
			return nil, syscall.ECONNREFUSED
		}
		conn, err := (&net.Dialer{}).DialContext(dialing, network, host)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}
	w.workers[name] = w.start(name)
}

// crash ends an instance as kill -9 or a power failure do: nothing is sent any more, and what was not synced is on the disk or is
// not. With lost, the disk is gone.
func (w *twins) crash(name string, lost bool) {
	w.plugs[name]()
	disk := w.disks[name].CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: w.rnd.IntN(101), RNG: w.rnd})
	w.workers[name].Stop(config.Keep) // it can tell nobody
	if w.disks[name] = disk; lost {
		w.disks[name] = nil
	}
}

// send produces records to those of the input topics that are read, as many at once as there are.
func (w *twins) send(records []*kgo.Record) {
	w.t.Helper()
	var sent []*kgo.Record
	for _, r := range records {
		if r.Topic = w.input(r.Topic); w.reads[r.Topic] {
			sent = append(sent, r)
		}
	}
	if err := w.client.ProduceSync(context.Background(), sent...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// awaitDone waits until both have committed all records of these inputs.
func (w *twins) awaitDone(inputs ...string) {
	w.t.Helper()
	var topics []string
	for _, name := range inputs {
		if topic := w.input(name); w.reads[topic] {
			topics = append(topics, topic)
		}
	}
	for _, b := range []*bench{w.calm, w.bench} {
		b.await(b.app+" is done", func() bool { return b.behind(topics) == "" })
	}
}

// behind names a partition that has records which are not committed; "": there is none.
func (b *bench) behind(topics []string) string {
	b.t.Helper()
	adm := kadm.NewClient(b.client)
	done, err := adm.FetchOffsets(context.Background(), b.app)
	if err != nil {
		return err.Error()
	}
	for _, topic := range topics {
		last := map[int32]int64{}
		for _, r := range b.committed(topic) {
			last[r.Partition] = r.Offset
		}
		for p, at := range last {
			if o, ok := done.Lookup(topic, p); !ok || o.At <= at {
				return fmt.Sprintf("%s[%d]: %d of %d", topic, p, o.At, at)
			}
		}
	}
	return ""
}

// committed are all committed records of a topic, those of each partition in order.
func (b *bench) committed(topic string) (records []*kgo.Record) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(b.client).ListCommittedOffsets(ctx, topic)
	if err != nil {
		b.t.Fatal(err)
	}
	starts, err := kadm.NewClient(b.client).ListStartOffsets(ctx, topic)
	if err != nil {
		b.t.Fatal(err)
	}
	left, from := map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if start, _ := starts.Lookup(topic, o.Partition); o.Offset > start.Offset {
			left[o.Partition], from[o.Partition] = o.Offset, kgo.NewOffset().At(start.Offset)
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	for len(left) > 0 && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
	}
	if len(left) > 0 {
		b.t.Fatalf("%s does not come to its end: %v", topic, left)
	}
	slices.SortStableFunc(records, func(a, b *kgo.Record) int { return int(a.Partition - b.Partition) })
	return records
}

// awaitQuiet waits until both have worked all off that is in their inputs and repartition topics.
func (w *twins) awaitQuiet() {
	w.t.Helper()
	for _, b := range []*bench{w.calm, w.bench} {
		var topics []string
		for _, s := range w.parse(b).topology.Subtopologies {
			for _, in := range s.Sources {
				topics = append(topics, in.Topic)
			}
		}
		left, quiet := "", 0
		b.await(b.app+" is quiet: "+left, func() bool {
			if left = b.behind(topics); left != "" {
				quiet = 0
				return false
			}
			quiet++ // what was looked at first may have written to what was looked at last
			return quiet > len(topics)
		})
	}
}

// changelog is what one has: the rows of its store by partition and key.
func (b *bench) changelog(topic string) map[string]string {
	rows := map[string]string{}
	for _, r := range b.committed(topic) {
		if key := fmt.Sprintf("%d %x", r.Partition, r.Key); r.Value == nil {
			delete(rows, key)
		} else {
			rows[key] = fmt.Sprintf("%x", r.Value)
		}
	}
	return rows
}

// held are the rows of a store as instances have them that run its tasks.
func (w *twins) held(sub int32, store string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for p := range int32(twinPartitions) {
		id := assign.TaskID{Subtopology: sub, Partition: p}
		w.await(fmt.Sprintf("task %s can be read", id), func() bool {
			for _, name := range slices.Sorted(maps.Keys(w.workers)) {
				rows, err := heldBy(w.workers[name], id, store)
				if err == nil {
					maps.Copy(all, rows)
					return true
				}
			}
			return false // a session is over on a slow machine
		})
	}
	return all
}

func heldBy(one *worker, id assign.TaskID, store string) (map[string]string, error) {
	view, err := one.View(id, false)
	if err != nil {
		return nil, err
	}
	it, err := view.AppliedRange(store, nil, nil)
	if err != nil {
		return nil, err
	}
	rows := map[string]string{}
	for it.Next() {
		rows[fmt.Sprintf("%d %x", id.Partition, it.Key())] = fmt.Sprintf("%x", it.Value())
	}
	return rows, errors.Join(it.Err(), it.Close())
}
