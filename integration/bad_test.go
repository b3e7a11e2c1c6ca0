//go:build integration

package integration

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/integration/harness"
)

// Exit codes of run, as streamworker exit-codes lists them.
const (
	exitError      = 1
	exitConfig     = 3
	exitSuperseded = 12
	exitDirInUse   = 13
	exitState      = 14
)

// ends waits until the process ends with the code, and fails the test unless its output says all of want and shows no
// panic.
func ends(t *testing.T, p *harness.Process, code int, want ...string) {
	t.Helper()
	if got := p.Wait(limit); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	output := p.Output()
	for _, w := range want {
		if !strings.Contains(output, w) {
			t.Errorf("the output does not say %q:\n%s", w, output)
		}
	}
	if strings.Contains(output, "goroutine ") {
		t.Errorf("it panicked:\n%s", output)
	}
}

func TestMissingInput(t *testing.T) {
	a := harness.NewApp(t, broker, "missing", 2)
	a.Write(strings.ReplaceAll(read(t, a), a.Input(), a.Input()+"puts"))
	ends(t, a.Start("a"), exitError, a.Input()+"puts", "topic is missing", "create it")
}

func TestUnreachableKafka(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := nobody.Addr().String()
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, broker, "unreachable", 2)
	ends(t, a.Start("a", "--brokers", address), exitError, address, "cannot reach Kafka", "check that the address is right")
}

func TestMalformedConfiguration(t *testing.T) {
	a := harness.NewApp(t, broker, "malformed", 2)
	a.Write(strings.Replace(read(t, a), "- count:", "- filter: valeu != 1\n      - count:", 1))
	ends(t, a.Start("a"), exitConfig, "app.yaml:8:17", "valeu")
}

func TestTwoProcessesOnOneDirectory(t *testing.T) {
	s := newScene(t, broker, 1000, []string{"a"})
	first := s.processes["a"]
	second := s.Start("a")
	ends(t, second, exitDirInUse, filepath.Join(s.Dir, "state", "a"))
	if !first.Running() {
		t.Error("the first process has ended")
	}
	s.AwaitBalanced("a")
}

func TestWrongPartitionCount(t *testing.T) {
	a := harness.NewApp(t, broker, "partitions", 4)
	admin := kadm.NewClient(broker.Client(t))
	changelog := a.Name + "-counts-changelog"
	compact := map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}
	if _, err := admin.CreateTopic(t.Context(), 3, 1, compact, changelog); err != nil {
		t.Fatal(err)
	}
	ends(t, a.Start("a"), exitError, changelog, "has 3 partitions, 4 are needed")
}

// TestAccessRefused runs on a Kafka with an authorizer that denies this client some things.
func TestAccessRefused(t *testing.T) {
	k := harness.OwnKafka(t,
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "allow.everyone.if.no.acl.found=true")
	admin := kadm.NewClient(k.Client(t))
	deny := func(t *testing.T, acl *kadm.ACLBuilder) {
		t.Helper()
		acl = acl.Deny("User:ANONYMOUS").DenyHosts().ResourcePatternType(kadm.ACLPatternLiteral)
		results, err := admin.CreateACLs(t.Context(), acl)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	t.Run("describe input", func(t *testing.T) {
		a := harness.NewApp(t, k, "denied", 2)
		deny(t, kadm.NewACLs().Topics(a.Input()).Operations(kmsg.ACLOperationDescribe))
		harness.Until(t, limit, "the broker refuses", func() bool {
			_, err := admin.ListTopics(t.Context(), a.Input())
			return errors.Is(err, kerr.TopicAuthorizationFailed)
		})
		ends(t, a.Start("a"), exitError, "not authorized to DESCRIBE topic "+a.Input(), "kafka-acls")
	})
	t.Run("join group", func(t *testing.T) {
		a := harness.NewApp(t, k, "denied", 2)
		deny(t, kadm.NewACLs().Groups(a.Name).Operations(kmsg.ACLOperationRead))
		p := a.Start("a")
		harness.Until(t, limit, "the output names the group and the refusal", func() bool {
			return strings.Contains(p.Output(), "GROUP_AUTHORIZATION_FAILED") && strings.Contains(p.Output(), a.Name)
		})
	})
	t.Run("read input", func(t *testing.T) {
		a := harness.NewApp(t, k, "denied", 2)
		deny(t, kadm.NewACLs().Topics(a.Input()).Operations(kmsg.ACLOperationRead))
		p := a.Start("a")
		harness.Until(t, limit, "the output names the topic and the refusal", func() bool {
			return strings.Contains(p.Output(), "TOPIC_AUTHORIZATION_FAILED") && strings.Contains(p.Output(), a.Input())
		})
	})
}

// TestUndecodableRecords puts records that are no numbers among numbers, under each policy.
func TestUndecodableRecords(t *testing.T) {
	const bad = "not eight bytes"
	sum := func(a *harness.App, policy string) string {
		return fmt.Sprintf(`app: %s
kafka: {brokers: ["%s"]}
log: {format: json}
streams:
  - name: numbers
    from: {topic: %s, value: int, on_error: %s}
    steps:
      - sum: value
      - to: {topic: %s, value: int}
`, a.Name, broker.Address, a.Input(), policy, a.Output())
	}
	one := string([]byte{0, 0, 0, 0, 0, 0, 0, 1})
	produce := func(t *testing.T, a *harness.App) {
		t.Helper()
		client := broker.Client(t)
		for _, value := range []string{one, bad, one} {
			r := &kgo.Record{Topic: a.Input(), Key: []byte(harness.Key(0)), Value: []byte(value)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("skip", func(t *testing.T) {
		a := harness.NewApp(t, broker, "skip", 1)
		a.Write(sum(a, "skip"))
		produce(t, a)
		a.Start("a")
		if got := lastOf(t, a.Output(), 2); got != string([]byte{0, 0, 0, 0, 0, 0, 0, 2}) {
			t.Errorf("the sum without the bad record is %q", got)
		}
	})
	t.Run("dead_letter", func(t *testing.T) {
		a := harness.NewApp(t, broker, "dead", 1)
		broker.CreateTopic(t, a.Name+"-dead-letter", 1)
		a.Write(sum(a, "dead_letter"))
		produce(t, a)
		a.Start("a")
		if got := lastOf(t, a.Output(), 2); got != string([]byte{0, 0, 0, 0, 0, 0, 0, 2}) {
			t.Errorf("the sum without the bad record is %q", got)
		}
		if got := lastOf(t, a.Name+"-dead-letter", 1); got != bad {
			t.Errorf("the dead letter holds %q", got)
		}
	})
	t.Run("fail", func(t *testing.T) {
		a := harness.NewApp(t, broker, "fail", 1)
		a.Write(sum(a, "fail"))
		produce(t, a)
		p := a.Start("a")
		harness.Until(t, limit, "the output names topic, partition and offset", func() bool {
			for _, e := range p.Events() {
				if err := e.Text("error"); e.Level == "ERROR" && strings.Contains(err, a.Input()) && strings.Contains(err, "offset 1") {
					return true
				}
			}
			return false
		})
		if got := lastOf(t, a.Output(), 1); got != one {
			t.Errorf("the record before the bad one led to %q", got)
		}
		harness.Until(t, limit, "status tells of the task and the record", func() bool {
			r := harness.Command(t, "status", "--brokers", broker.Address, "--app", a.Name)
			_, failing, _ := strings.Cut(r.Stdout, "CANNOT GO ON")
			return strings.Contains(failing, "0_0") && strings.Contains(failing, "offset 1")
		})
	})
}

// TestCorruptState damages the state on disk: it is set aside and rebuilt.
func TestCorruptState(t *testing.T) {
	s := newScene(t, broker, 1000, []string{"a"})
	s.processes["a"].Signal(syscall.SIGTERM)
	s.processes["a"].Wait(limit)
	tasks, err := filepath.Glob(filepath.Join(s.Dir, "state", "a", "tasks", "*", "MANIFEST-*"))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no state on disk: %v", err)
	}
	for _, manifest := range tasks {
		if err := os.WriteFile(manifest, []byte("garbage"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := s.start("a")
	s.flow(rate)
	s.goOn(rate)
	s.load.Stop()
	s.watch.AwaitExact(s.load, limit)
	if !strings.Contains(p.Output(), "set aside") {
		t.Error("no log line says that state was set aside")
	}
}

func read(t *testing.T, a *harness.App) string {
	t.Helper()
	text, err := os.ReadFile(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lastOf waits for the n-th record of a topic and returns its value.
func lastOf(t *testing.T, topic string, n int) string {
	t.Helper()
	client := broker.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	seen, value := 0, ""
	harness.Until(t, limit, fmt.Sprintf("topic %s has %d records", topic, n), func() bool {
		client.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			if seen++; seen == n {
				value = string(r.Value)
			}
		})
		return seen >= n
	})
	return value
}
