package config

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

const (
	mib = 1 << 20
	tib = 1 << 40
	day = 24 * time.Hour
)

// Load reads and checks the file at path. env resolves ${NAME}, as os.LookupEnv does; nil leaves references alone. The
// error lists all mistakes (yamlnode.Problems), or says why the file cannot be read.
func Load(path string, env func(string) (string, bool), o Overrides) (*Config, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(path, src, env, o)
}

// Parse is Load for a file already in memory; name stands for it in messages.
func Parse(name string, src []byte, env func(string) (string, bool), o Overrides) (*Config, error) {
	f := yamlnode.Parse(name, src, env)
	if err := f.Err(); err != nil {
		return nil, err
	}
	f.Override(EnvPrefix)
	r := newReader(f, name, o)
	r.read(f.Root().Map())
	if o.CheckFiles {
		now := time.Now()
		for _, e := range slices.Concat(r.c.Kafka.Check(now), r.c.SchemaRegistry.Check(now), r.c.Admin.check()) {
			r.files[e.Setting].Errorf(e.Hint, "%s", e.Message)
		}
	}
	r.checkVariables(src, env)
	problems := append(f.Problems(), r.program.Problems()...)
	if len(problems) > 0 {
		return nil, problems
	}
	if o.Program != nil {
		src = o.Program.Text
	}
	r.c.fields, r.c.streams = f.Fields(), streamsOf(src)
	return r.c, nil
}

func newReader(f *yamlnode.File, name string, o Overrides) *reader {
	return &reader{file: f, o: o, c: &Config{Path: name}, files: make(map[string]yamlnode.Node)}
}

// EnvPrefix is what the names of environment variables begin with that override the file: STREAMWORKER_KAFKA_BROKERS
// replaces kafka.brokers. All keys outside of streams and tables have one.
const EnvPrefix = "STREAMWORKER_"

// Environment is the connection of a command that has no file: the brokers of a flag, and what the environment says of
// the key kafka.
func Environment(env func(string) (string, bool), brokers []string) (kafka.Connection, error) {
	f := yamlnode.Parse("environment", []byte("{}"), env)
	f.Override(EnvPrefix)
	r := newReader(f, "", Overrides{Brokers: brokers})
	r.kafka(f.Root().Map().Get("kafka"))
	return r.c.Kafka.Connection, f.Err()
}

type reader struct {
	file *yamlnode.File
	// program is what says what to compute in place of the file; nil: the file does.
	program *yamlnode.File
	o       Overrides
	c       *Config
	files   map[string]yamlnode.Node // that name files, by path
}

func (r *reader) read(m *yamlnode.Map) {
	c := r.c
	app := m.Require("app", "name the application: it is the group's id and the prefix of its internal topics")
	c.App = r.prefixed(r.name(app, ""))
	r.kafka(m.Get("kafka"))
	schemas := r.schemaRegistry(m.Get("schema_registry"))
	r.internalTopics(m.Get("internal_topics"))
	r.guarantee(m.Get("guarantee"))
	r.instance(m)
	r.state(m.Get("state"))
	c.Threads = int(m.Get("threads").Int(int64(runtime.GOMAXPROCS(0)), 1, 4096))
	r.commitInterval(m.Get("commit_interval"))
	r.learners(m.Get("learners"))
	c.Standbys = int(m.Get("standbys").Int(0, 0, 16))
	c.BalancingFactor = int(m.Get("balancing_factor").Int(2, 2, math.MaxInt32))
	c.ScaleDownTimeout = m.Get("scale_down_timeout").Duration(0, time.Second, 365*day)
	r.onTerminate(m.Get("on_terminate"))
	checkRebalance := r.rebalance(m)
	r.admin(m.Get("admin"))
	r.telemetry(m.Get("telemetry"))
	r.log(m.Get("log"))
	tables, streams := r.topology(m)
	c.Topology = topology.Definition{
		App: c.App, Prefix: r.o.Prefix, Dir: filepath.Dir(c.Path), Registry: schemas, Tables: tables, Streams: streams,
	}.Parse()
	checkRebalance()
	m.Done()
}

// topology finds what to compute: in the file, or in the program, which leaves no room for it there.
func (r *reader) topology(m *yamlnode.Map) (tables, streams yamlnode.Node) {
	tables, streams = m.Get("tables"), m.Get("streams")
	if r.o.Program == nil {
		return tables, streams
	}
	for _, n := range []yamlnode.Node{tables, streams} {
		if n.Exists() {
			n.Errorf("remove it", "this program has its streams and tables in Go")
		}
	}
	r.program = r.o.Program.File()
	root := r.program.Root().Map()
	return root.Get("tables"), root.Get("streams")
}

// commitInterval is the life of a transaction as well, which must end before its timeout.
func (r *reader) commitInterval(n yamlnode.Node) {
	c := r.c
	c.CommitInterval = n.Duration(100*time.Millisecond, time.Millisecond, time.Hour)
	if c.Guarantee == ExactlyOnce && 2*c.CommitInterval > c.Kafka.TransactionTimeout {
		n.Errorf("make it at most half of kafka.transaction_timeout, or raise that", "%s is too long for transactions that time out after %s",
			c.CommitInterval, c.Kafka.TransactionTimeout)
	}
}

var legalName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,200}$`)

// name reads something that becomes part of topic names or paths.
func (r *reader) name(n yamlnode.Node, def string) string {
	s := n.String(def)
	if s != "" && (!legalName.MatchString(s) || s == "." || s == "..") {
		n.Errorf("use at most 200 letters, digits, '.', '_' and '-'", "%q is no lawful name", s)
	} else if s == "" && n.Exists() {
		n.Errorf("", "the name is empty")
	}
	return s
}

func (r *reader) prefixed(name string) string {
	if name == "" {
		return ""
	}
	return r.o.Prefix + name
}

func (r *reader) kafka(n yamlnode.Node) {
	m, k := n.Map(), &r.c.Kafka
	brokers := m.Get("brokers")
	items := []yamlnode.Node{brokers}
	if brokers.IsList() {
		items = brokers.List()
	}
	for _, item := range items {
		for address := range strings.SplitSeq(item.String(""), ",") {
			if address = strings.TrimSpace(address); address == "" {
				continue
			}
			k.Brokers = append(k.Brokers, address)
			if err := checkAddress(address, true); err != nil {
				item.Errorf("write host:port, e.g. localhost:9092", "%v", err)
			}
		}
	}
	if len(r.o.Brokers) > 0 {
		k.Brokers = r.o.Brokers
		for _, b := range k.Brokers {
			if err := checkAddress(b, true); err != nil {
				r.file.Errorf("write host:port, e.g. --brokers localhost:9092", "--brokers: %v", err)
			}
		}
	}
	brokers.Become(k.Brokers)
	if len(k.Brokers) == 0 && !r.o.Offline {
		r.file.Errorf("write kafka: {brokers: [localhost:9092]}, or use --brokers", "kafka.brokers: no broker is named")
	}
	r.tls(m.Get("tls"), &k.TLS)
	r.sasl(m.Get("sasl"))
	group := m.Get("group")
	if k.Group = r.name(group, r.c.App); group.Exists() {
		k.Group = r.prefixed(k.Group)
	}
	k.ClientID = m.Get("client_id").String(r.c.App)
	heartbeat := m.Get("heartbeat")
	session := m.Get("session_timeout")
	rebalance := m.Get("rebalance_timeout")
	k.Heartbeat = heartbeat.Duration(time.Second, 50*time.Millisecond, time.Hour)
	k.SessionTimeout = session.Duration(15*time.Second, time.Second, day)
	k.RebalanceTimeout = rebalance.Duration(time.Minute, time.Second, day)
	k.TransactionTimeout = m.Get("transaction_timeout").Duration(10*time.Second, time.Second, time.Hour)
	k.MaxMessageBytes = int(m.Get("max_message_bytes").Int(1_000_012, 1024, 64*mib))
	if k.SessionTimeout < 3*k.Heartbeat {
		at := session
		if !at.Exists() {
			at = heartbeat
		}
		at.Errorf("make it at least three heartbeats, so that one lost heartbeat does no harm", "session_timeout %s is too short for a heartbeat every %s",
			k.SessionTimeout, k.Heartbeat)
	}
	m.Done()
}

// checkAddress checks host:port; the port may be left out where portOptional.
func checkAddress(s string, portOptional bool) error {
	if strings.Contains(s, "@") { // not shown: what is in front of it may be a secret
		return errors.New("an address has no name and password in front of an @")
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil && portOptional && s != "" && !strings.ContainsAny(s, ":/ ") {
		return nil
	}
	if err != nil || strings.ContainsAny(host, "/ ") {
		return fmt.Errorf("%q is no address", s)
	}
	if host == "" && portOptional {
		return fmt.Errorf("%q names no host", s)
	}
	if p, err := strconv.Atoi(port); err != nil || p < 0 || p > 65535 || p == 0 && portOptional {
		return fmt.Errorf("%q has no lawful port", s)
	}
	return nil
}

func (r *reader) internalTopics(n yamlnode.Node) {
	m, t := n.Map(), &r.c.InternalTopics
	t.Create = m.Get("create").Bool(true)
	replication := m.Get("replication")
	t.Replication = int16(replication.Int(-1, 1, math.MaxInt16))
	insync := m.Get("min_insync_replicas")
	t.MinInsyncReplicas = int(insync.Int(0, 1, math.MaxInt16))
	if t.Replication > 0 && t.MinInsyncReplicas > int(t.Replication) {
		insync.Errorf("", "%d replicas can never be in sync: replication is %d", t.MinInsyncReplicas, t.Replication)
	}
	m.Done()
}

func (r *reader) guarantee(n yamlnode.Node) {
	r.c.Guarantee = Guarantee(n.Enum(string(AtLeastOnce), string(AtLeastOnce), string(ExactlyOnce)))
}

func (r *reader) instance(m *yamlnode.Map) {
	c := r.c
	id := m.Get("instance_id")
	c.InstanceID = r.name(id, "")
	if r.o.InstanceID != "" {
		c.InstanceID = r.o.InstanceID
		id.Become(c.InstanceID)
		if !legalName.MatchString(c.InstanceID) {
			r.file.Errorf("use at most 200 letters, digits, '.', '_' and '-'", "--instance-id: %q is no lawful name", c.InstanceID)
		}
	}
	labels := m.Get("labels")
	c.Labels = r.labels(labels)
	if len(r.o.Labels) > 0 {
		if c.Labels == nil {
			c.Labels = make(map[string]string)
		}
		maps.Copy(c.Labels, r.o.Labels)
	}
	labels.Become(c.Labels)
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		if name == "" || strings.ContainsAny(name+c.Labels[name], "=, \t\n") {
			labels.Errorf("selectors are written name=value, so use neither '=' nor ',' nor spaces", "%s=%s cannot be a label", name, c.Labels[name])
		}
	}
	c.Capacity = uint32(m.Get("capacity").Int(1, 1, 1_000_000))
	c.Rack = m.Get("rack").String("")
}

// labels of the environment are added to those of the file.
func (r *reader) labels(n yamlnode.Node) map[string]string {
	found := n.StringMap()
	text, _ := n.Override()
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			n.Errorf("write name=value, with commas between", "%q is no label", pair)
			continue
		}
		if found == nil {
			found = make(map[string]string)
		}
		found[name] = value
	}
	return found
}

func (r *reader) state(n yamlnode.Node) {
	m, s := n.Map(), &r.c.State
	dir := m.Get("dir")
	s.Dir = dir.String(filepath.Join("/var/lib/streamworker", r.c.App))
	if r.o.StateDir != "" {
		s.Dir = r.o.StateDir
		dir.Become(s.Dir)
	}
	s.BlockCache = m.Get("block_cache").Size(32*mib, mib, tib)
	s.Memtables = m.Get("memtables").Size(64*mib, mib, tib)
	s.RowCache = m.Get("row_cache").Size(256*mib, 0, tib)
	s.MaxOpenFiles = int(m.Get("max_open_files").Int(1000, 50, 10_000_000))
	s.Compactions = int(m.Get("compactions").Int(2, 1, 1024))
	m.Done()
}

func (r *reader) learners(n yamlnode.Node) {
	m, l := n.Map(), &r.c.Learners
	l.Mode = LearnerMode(m.Get("mode").Enum(string(Eager), string(Eager), string(Stable)))
	l.AcceptableLag = m.Get("acceptable_lag").Int(10_000, 1, math.MaxInt64)
	l.MaxLearners = int(m.Get("max_learners").Int(0, 0, math.MaxInt32))
	l.StuckAfter = m.Get("stuck_after").Duration(10*time.Minute, 10*time.Second, 7*24*time.Hour)
	l.Bandwidth = m.Get("bandwidth").Rate(0, 64<<10, tib)
	m.Done()
}

func (r *reader) onTerminate(n yamlnode.Node) {
	def := Release
	if r.c.InstanceID != "" {
		def = Keep
	}
	r.c.OnTerminate = OnTerminate(n.Enum(string(def), string(Keep), string(Release), string(Drain)))
	if r.c.OnTerminate == Keep && r.c.InstanceID == "" {
		n.Errorf("set instance_id, or --instance-id", "keep needs a name under which the restarted instance is known")
	}
}

func (r *reader) log(n yamlnode.Node) {
	m := n.Map()
	r.c.Log.Level = m.Get("level").Enum("info", "debug", "info", "warn", "error")
	r.c.Log.Format = m.Get("format").Enum("text", "text", "json")
	m.Done()
}

// ConfigHash is equal for instances that can work in one group without surprise: it covers the topology, the guarantee
// and what the group's leader plans by.
func (c *Config) ConfigHash() uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, c.App, c.Topology.Hash(), c.Guarantee, c.Standbys, c.BalancingFactor, c.Learners.MaxLearners)
	return h.Sum64()
}
