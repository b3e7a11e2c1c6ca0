package doctor_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/doctor"
	"github.com/streamworker/streamworker/pkg/instance"
)

const file = `
app: %[1]s
kafka: {brokers: [%[2]s], heartbeat: 200ms, session_timeout: 6s%[4]s}
state: {dir: %[3]q, max_open_files: 50}
streams:
  - name: events
    from: {topic: %[1]s-in}
    steps:
      - count: {store: counts}
      - to: {topic: %[1]s-out, value: int}
%[5]s`

// patient is one application that is examined.
type patient struct {
	t       *testing.T
	app     string
	brokers []string
	dir     string
	login   string // in the key kafka
	more    string // lines of the file
	adm     *kadm.Client
	client  *kgo.Client

	patience time.Duration
}

func newPatient(t *testing.T, brokers []string, opts ...kgo.Opt) *patient {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "swd") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cl, err := kgo.NewClient(append(append(control.Opts(), kgo.SeedBrokers(brokers...)), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &patient{t: t, app: "doctor-" + strings.ToLower(rand.Text()[:8]), brokers: brokers, dir: filepath.Join(dir, "state"), client: cl, adm: kadm.NewClient(cl), patience: 20 * time.Second}
}

func (p *patient) create(partitions int32, replicas int16, configs map[string]*string, names ...string) {
	p.t.Helper()
	for _, name := range names {
		if _, err := p.adm.CreateTopic(p.t.Context(), partitions, replicas, configs, p.app+name); err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { _, _ = p.adm.DeleteTopic(context.Background(), p.app+name) })
	}
}

func (p *patient) config(more string, o config.Overrides) *config.Config {
	p.t.Helper()
	text := fmt.Sprintf(file, p.app, `"`+strings.Join(p.brokers, `", "`)+`"`, p.dir, p.login, more)
	cfg, err := config.Parse("app.yaml", []byte(text), nil, o)
	if err != nil {
		p.t.Fatal(err)
	}
	return cfg
}

// start runs an instance until the test ends.
func (p *patient) start(id, more string) {
	inst := instance.New(p.config(more, config.Overrides{InstanceID: id, StateDir: filepath.Join(p.dir, id)}), instance.Options{})
	done := make(chan error, 1)
	go func() { done <- inst.Run(context.Background()) }()
	p.t.Cleanup(func() {
		inst.Stop(config.Release)
		if err := <-done; err != nil {
			p.t.Error(err)
		}
	})
}

type findings []doctor.Finding

func (p *patient) examine() (bool, findings) {
	p.t.Helper()
	var all findings
	healthy, err := doctor.New(p.config(p.more, config.Overrides{}), p.patience).Examine(p.t.Context(), func(f doctor.Finding) { all = append(all, f) })
	if err != nil {
		p.t.Fatal(err)
	}
	return healthy, all
}

func (f findings) String() string {
	var b strings.Builder
	for _, one := range f {
		fmt.Fprintf(&b, "%s %s: %s\n", one.Result, one.Check, one.Message)
	}
	return b.String()
}

func (f findings) has(r doctor.Result, check, text string) bool {
	return slices.ContainsFunc(f, func(one doctor.Finding) bool {
		return one.Result == r && one.Check == check && strings.Contains(one.Message, text)
	})
}

// finds examines and demands a finding. It is unhealthy if one failed.
func (p *patient) finds(r doctor.Result, check, text string) {
	p.t.Helper()
	healthy, all := p.examine()
	if !all.has(r, check, text) {
		p.t.Errorf("want %s %s: %q, got\n%s", r, check, text, all)
	}
	if failed := slices.ContainsFunc(all, func(f doctor.Finding) bool { return f.Result == doctor.Failed }); healthy == failed {
		p.t.Errorf("healthy: %t\n%s", healthy, all)
	}
}

// awaits examines until there is the finding.
func (p *patient) awaits(r doctor.Result, check, text string) findings {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, all := p.examine()
		if all.has(r, check, text) {
			return all
		}
		if time.Now().After(end) {
			p.t.Fatalf("want %s %s: %q, got\n%s", r, check, text, all)
		}
	}
}

func fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestHealthy(t *testing.T) {
	test := func(t *testing.T, brokers []string) {
		p := newPatient(t, brokers)
		p.create(2, 1, nil, "-in", "-out")
		p.more = "guarantee: exactly_once\n"
		healthy, all := p.examine()
		if !healthy || !all.has(doctor.OK, "internal topics", "1 are missing and can be made") || !all.has(doctor.OK, "connection", "in plain text") ||
			!all.has(doctor.OK, "transactions", "transaction version 2") {
			t.Errorf("before the first start:\n%s", all)
		}
		other := newPatient(t, brokers) // whose client has nothing cached
		after, err := other.adm.ListTopics(t.Context())
		if err != nil || after.Has(p.app+"-counts-changelog") || after.Has(p.app+"-control") {
			t.Errorf("topics were made: %v, %v", after.Names(), err)
		}
		if _, err := os.Stat(p.dir); err == nil {
			t.Error("the state directory was made")
		}
		t.Cleanup(func() {
			_, _ = other.adm.DeleteTopics(context.Background(), p.app+"-control", p.app+"-counts-changelog")
		})
		p.start("a", p.more)
		all = p.awaits(doctor.OK, "group", "all members run this configuration")
		if slices.ContainsFunc(all, func(f doctor.Finding) bool { return f.Result == doctor.Failed }) {
			t.Errorf("with an instance:\n%s", all)
		}
		p.awaits(doctor.OK, "clocks", "at most")
	}
	t.Run("kfake", func(t *testing.T) { test(t, fake(t).ListenAddrs()) })
	t.Run("kafka", func(t *testing.T) {
		if os.Getenv("STREAMWORKER_TEST_BROKERS") == "" {
			t.Skip("set STREAMWORKER_TEST_BROKERS to test on a real Kafka")
		}
		test(t, strings.Split(os.Getenv("STREAMWORKER_TEST_BROKERS"), ","))
	})
}

func TestBrokers(t *testing.T) {
	t.Run("one address is wrong", func(t *testing.T) {
		p := newPatient(t, fake(t).ListenAddrs())
		p.brokers, p.patience = append(p.brokers, "127.0.0.1:1"), 2*time.Second
		p.create(1, 1, nil, "-in", "-out")
		p.finds(doctor.Warning, "connection", "127.0.0.1:1")
	})
	t.Run("none answers", func(t *testing.T) {
		p := newPatient(t, []string{"127.0.0.1:1"})
		p.patience = time.Second // nobody will answer, which takes some time to be told
		p.finds(doctor.Failed, "connection", "connection refused")
		p.finds(doctor.Skipped, "topics", "without a broker")
	})
	t.Run("one broker does not answer", func(t *testing.T) {
		c := fake(t, kfake.NumBrokers(2))
		p := newPatient(t, c.ListenAddrs()[:1])
		p.patience = 2 * time.Second
		p.create(1, 1, nil, "-in", "-out")
		seed := int32(-1)
		c.ControlKey(int16(kmsg.ApiVersions), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			if seed < 0 {
				seed = c.CurrentNode()
			}
			if c.CurrentNode() != seed {
				return nil, errors.New("closed"), true
			}
			return nil, nil, false
		})
		p.finds(doctor.Failed, "brokers", "the address that it advertises")
	})
	t.Run("old transactions", func(t *testing.T) {
		p := newPatient(t, fake(t, kfake.MaxVersions(kversion.V3_9_0())).ListenAddrs())
		p.create(1, 1, nil, "-in", "-out")
		p.more = "guarantee: exactly_once\n"
		p.finds(doctor.Warning, "transactions", "transaction.version=2")
		p.finds(doctor.Warning, "transactions", "instance_id is not set")
	})
}

func TestTopics(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		p := newPatient(t, fake(t).ListenAddrs())
		p.create(1, 1, nil, "-in")
		p.finds(doctor.Failed, "topics", "topic is missing: "+p.app+"-out")
	})
	t.Run("internal, to be made by the user", func(t *testing.T) {
		p := newPatient(t, fake(t).ListenAddrs())
		p.create(1, 1, nil, "-in", "-out")
		p.more = "internal_topics: {create: false}\n"
		p.finds(doctor.Failed, "internal topics", "kafka-topics --create --topic "+p.app+"-counts-changelog")
	})
	t.Run("internal, cannot be made", func(t *testing.T) {
		p := newPatient(t, fake(t).ListenAddrs())
		p.create(1, 1, nil, "-in", "-out")
		p.more = "internal_topics: {replication: 3}\n"
		p.finds(doctor.Failed, "internal topics", "must not exceed the number of brokers")
	})
	t.Run("internal, does not fit", func(t *testing.T) {
		p := newPatient(t, fake(t).ListenAddrs())
		p.create(2, 1, nil, "-in", "-out")
		p.create(3, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}, "-counts-changelog")
		p.finds(doctor.Failed, "internal topics", "has 3 partitions, 2 are needed")
		p.finds(doctor.Warning, "replicas", "there is one copy")
	})
	for _, c := range []struct {
		copies int16
		min    string
		result doctor.Result
		want   string
	}{
		{2, "3", doctor.Failed, "nothing can be written to it: lower min.insync.replicas"},
		{2, "2", doctor.Warning, "while one broker is down"},
		{3, "1", doctor.Warning, "may be lost with one broker"},
		{3, "2", doctor.OK, "every partition has a leader"},
	} {
		t.Run(fmt.Sprintf("%d copies, min %s", c.copies, c.min), func(t *testing.T) {
			p := newPatient(t, fake(t, kfake.NumBrokers(3)).ListenAddrs())
			p.create(1, 3, nil, "-in", "-out")
			p.create(1, c.copies, map[string]*string{"cleanup.policy": kadm.StringPtr("compact"), "min.insync.replicas": &c.min}, "-counts-changelog")
			p.finds(c.result, "replicas", c.want)
		})
	}
}

func TestRights(t *testing.T) {
	allow := func(kind kmsg.ACLResourceType, name string, operations ...kmsg.ACLOperation) (acls []kfake.ACL) {
		for _, op := range operations {
			acls = append(acls, kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypePrefixed, Operation: op, Allow: true})
		}
		return acls
	}
	const topic, group, txn = kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeGroup, kmsg.ACLResourceTypeTransactionalId
	const read, write, describe = kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe
	all := slices.Concat(
		allow(topic, "doctor-", read, write, describe, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationCreate),
		allow(group, "doctor-", read, describe), allow(txn, "doctor-", write, describe))
	without := func(kind kmsg.ACLResourceType, operations ...kmsg.ACLOperation) []kfake.ACL {
		return slices.DeleteFunc(slices.Clone(all), func(a kfake.ACL) bool { return a.Resource == kind && slices.Contains(operations, a.Operation) })
	}
	for _, c := range []struct {
		name   string
		acls   []kfake.ACL
		result doctor.Result
		check  string
		want   string
	}{
		{"all", all, doctor.OK, "rights", "all that are needed"},
		{"in clear", all, doctor.Warning, "connection", "crosses the network in clear"},
		{"topic write", without(topic, write), doctor.Failed, "rights", "not authorized to WRITE topic doctor-"},
		{"topic create", without(topic, kmsg.ACLOperationCreate), doctor.Failed, "internal topics", "not authorized to CREATE topic doctor-"},
		{"group read", without(group, read), doctor.Failed, "rights", "not authorized to READ group"},
		{"group", without(group, read, describe), doctor.Failed, "rights", "not authorized to DESCRIBE group"},
		{"transactional id", without(txn, write, describe), doctor.Failed, "rights", "not authorized to DESCRIBE transactional id doctor-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := fake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "app", "app", c.acls...))
			p := newPatient(t, cluster.ListenAddrs(), kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism()))
			p.login = ", sasl: {mechanism: PLAIN, username: app, password: app}"
			p.more = "guarantee: exactly_once\ninstance_id: a\n"
			p.create(1, 1, nil, "-in", "-out")
			var offsets kadm.Offsets
			offsets.AddOffset(p.app+"-in", 0, 0, -1)
			if err := p.adm.CommitAllOffsets(t.Context(), p.app, offsets); err != nil { // kfake looks at rights on groups that exist
				t.Fatal(err)
			}
			p.finds(c.result, c.check, c.want)
		})
	}
}

func TestGroup(t *testing.T) {
	t.Run("other consumers", func(t *testing.T) {
		p := newPatient(t, fake(t).ListenAddrs())
		p.create(1, 1, nil, "-in", "-out")
		cl, err := kgo.NewClient(kgo.SeedBrokers(p.brokers...), kgo.ConsumerGroup(p.app), kgo.ConsumeTopics(p.app+"-in"), kgo.ClientID("intruder"))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		p.awaits(doctor.Failed, "group", "other consumers in it (protocol")
	})
	t.Run("another configuration", func(t *testing.T) {
		p := newPatient(t, fake(t).ListenAddrs())
		p.create(2, 1, nil, "-in", "-out")
		p.start("a", "balancing_factor: 3\n")
		p.awaits(doctor.Warning, "group", "all members run another configuration")
		p.start("b", "")
		p.awaits(doctor.Failed, "group", "different from app.yaml: a:")
	})
}

func TestStatuses(t *testing.T) {
	p := newPatient(t, fake(t).ListenAddrs())
	p.create(1, 1, nil, "-in", "-out")
	bus := control.NewBus(p.client, p.app, slog.New(slog.DiscardHandler))
	if err := bus.EnsureTopic(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	p.finds(doctor.Skipped, "clocks", "before an instance has run")
	s := control.Status{Instance: "a", State: control.Running, UpdatedMs: time.Now().Add(-time.Minute).UnixMilli()}
	s.Fail("0_0", errors.New("a bad record"), 3)
	if err := bus.PutStatus(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	p.finds(doctor.Failed, "tasks", "task 0_0 cannot go on on a, 3 attempts: a bad record")
	p.finds(doctor.Warning, "clocks", "the clock of a was 1m")
}

// Ctrl-C is no finding.
func TestInterrupted(t *testing.T) {
	p := newPatient(t, []string{"127.0.0.1:1"})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	healthy, err := doctor.New(p.config("", config.Overrides{}), p.patience).Examine(ctx, func(f doctor.Finding) {
		if f.Result != doctor.OK && f.Check != "state directory" && f.Check != "open files" {
			t.Errorf("%s %s: %s", f.Result, f.Check, f.Message)
		}
	})
	if healthy || !errors.Is(err, cause) {
		t.Errorf("healthy %t, error %v", healthy, err)
	}
}

func TestHost(t *testing.T) {
	p := newPatient(t, []string{"127.0.0.1:1"})
	p.patience = time.Millisecond // nobody will answer
	p.finds(doctor.OK, "state directory", "does not exist; the first start makes it")
	for _, dir := range []string{filepath.Join("tasks", "0_0"), filepath.Join("set-aside", "0_1-x")} {
		if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	p.finds(doctor.OK, "state directory", "the state of 1 tasks")
	t.Chdir(filepath.Dir(p.dir))
	whole := p.dir
	p.dir = filepath.Base(whole)
	p.finds(doctor.OK, "state directory", whole+" can be written to")
	p.dir = whole
	p.finds(doctor.OK, "state directory", "no process has it")
	p.finds(doctor.Warning, "state directory", "1 databases are set aside")
	if os.Geteuid() != 0 { // root may write everywhere
		if err := os.Chmod(p.dir, 0o550); err != nil {
			t.Fatal(err)
		}
		p.finds(doctor.Failed, "state directory", "cannot be written to")
	}
	p.dir = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(p.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.finds(doctor.Failed, "state directory", "not a directory")
}

func TestOpenFiles(t *testing.T) {
	p := newPatient(t, []string{"127.0.0.1:1"})
	p.patience = time.Millisecond // nobody will answer
	p.finds(doctor.OK, "open files", "150 are needed")
	cfg := p.config("", config.Overrides{})
	cfg.State.MaxOpenFiles = 1 << 40
	var all findings
	if _, err := doctor.New(cfg, time.Millisecond).Examine(t.Context(), func(f doctor.Finding) { all = append(all, f) }); err != nil {
		t.Fatal(err)
	}
	if !all.has(doctor.Failed, "open files", "raise the limit") {
		t.Errorf("got\n%s", all)
	}
}

// Whoever waits for the brokers hears what they are asked for.
func TestAsking(t *testing.T) {
	for want, brokers := range map[string][]string{
		"connection, brokers, transactions, topics, rights, group, tasks and clocks": fake(t).ListenAddrs(),
		"connection": {"127.0.0.1:1"},
	} {
		p := newPatient(t, brokers)
		if want == "connection" {
			p.patience = 10 * time.Millisecond
		}
		d := doctor.New(p.config(p.more, config.Overrides{}), p.patience)
		var asked []string
		d.Asking = func(about string) { asked = append(asked, about) }
		if _, err := d.Examine(t.Context(), func(doctor.Finding) {}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(asked, ", "); got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
	}
}
