//go:build integration

package integration

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/integration/harness"
)

// copyJob is a stateless job that plain consumers can do as well.
const copyJob = `app: %s
kafka: {brokers: ["%s"]}
log: {format: json, level: info}
streams:
  - {name: events, from: {topic: %s}, steps: [to: {topic: %s}]}
`

// TestUpgrade replaces three plain consumers under load by instances in the mode upgrading, one by one, these by instances
// in the incremental mode, and goes all the way back. No record is lost or doubled.
func TestUpgrade(t *testing.T) {
	for _, c := range []struct{ client, strategy, from, guarantee string }{
		{"kgo", "cooperative-sticky", "cooperative-sticky", "at_least_once"},
		{"kgo", "range", "range", "exactly_once"},
		{"sarama", "range", "range", "at_least_once"},
		{"sarama", "roundrobin", "roundrobin", "exactly_once"},
		{"sarama", "sticky", "sticky", "at_least_once"},
		{"java", "default", "range", "exactly_once"},
		{"java", "roundrobin", "roundrobin", "at_least_once"},
		{"java", "sticky", "sticky", "at_least_once"},
		{"java", "cooperative-sticky", "cooperative-sticky", "exactly_once"},
	} {
		t.Run(c.client+"-"+c.strategy, func(t *testing.T) {
			u := newUpgrade(t, c.client, c.strategy, c.guarantee)
			u.there(c.from)
			u.back(c.from)
			u.exact()
		})
	}
}

// TestUpgradeOfBrokersAssignment starts an instance beside consumers whose partitions the brokers assign (KIP-848), which let
// members like ours in: it leaves at once and says what to do.
func TestUpgradeOfBrokersAssignment(t *testing.T) {
	u := newUpgrade(t, "java", "broker", "at_least_once")
	u.Write(u.job + "rebalance_mode: upgrading\nupgrade_from: range\n")
	p := u.Start("a")
	if code := p.Wait(limit); code != 1 || !strings.Contains(p.Output(), "restart these with group.protocol=classic first") {
		t.Errorf("exit code %d", code)
	}
	u.awaitPlain()
	u.exact()
}

// upgrade is a group in which plain consumers and instances take turns under load.
type upgrade struct {
	*harness.App
	t                *testing.T
	client, strategy string
	job              string
	load             *harness.Load
	plain            []*plainConsumer
	instances        []*harness.Process
}

var instanceNames = []string{"a", "b", "c"}

const copyPartitions = 6

func newUpgrade(t *testing.T, client, strategy, guarantee string) *upgrade {
	t.Helper()
	u := &upgrade{
		App: harness.NewApp(t, broker, "upgrade-"+client, copyPartitions), t: t, client: client, strategy: strategy,
		plain: make([]*plainConsumer, len(instanceNames)), instances: make([]*harness.Process, len(instanceNames)),
	}
	u.job = fmt.Sprintf(copyJob, u.Name, u.Kafka.Address, u.Input(), u.Output()) + "guarantee: " + guarantee + "\n"
	u.load = harness.NewLoad(t, u.App, 10_000)
	for i := range u.plain {
		u.plain[i] = u.startPlain()
	}
	u.awaitPlain()
	u.load.Start(1000)
	return u
}

// there rolls the group from plain consumers to instances of the incremental mode.
func (u *upgrade) there(from string) {
	u.t.Helper()
	u.Write(u.job + "rebalance_mode: upgrading\nupgrade_from: " + from + "\n")
	before := u.generation()
	for i := range u.plain {
		u.plain[i].end()
		u.plain[i] = nil
		u.instances[i] = u.Start(instanceNames[i])
		u.awaitShare(i)
		if i+1 < len(u.plain) {
			u.awaitSpeaks(from)
			u.awaitPlain()
		}
	}
	u.awaitSpeaks("streamworker")
	u.t.Logf("from %s to upgrading: %d rebalances for %d steps", u.client, u.generation()-before, len(u.plain))
	u.Write(u.job)
	u.roll("from upgrading to incremental")
}

// back rolls the group from instances of the incremental mode to plain consumers.
func (u *upgrade) back(from string) {
	u.t.Helper()
	// No instance comes back under the id of one that kept its membership: others would wait for the end of its session.
	u.Write(u.job + "on_terminate: release\nrebalance_mode: upgrading\nupgrade_from: " + from + "\n")
	u.roll("from incremental to upgrading")
	before := u.generation()
	for i := range u.instances {
		u.stop(i)
		u.plain[i] = u.startPlain()
		u.awaitSpeaks(from)
		u.awaitPlain()
		u.goOn()
	}
	u.t.Logf("from upgrading to %s: %d rebalances for %d steps", u.client, u.generation()-before, len(u.plain))
}

// roll restarts the instances one by one.
func (u *upgrade) roll(what string) {
	u.t.Helper()
	before := u.generation()
	for i := range u.instances {
		u.stop(i)
		u.instances[i] = u.Start(instanceNames[i])
		u.awaitShare(i)
	}
	u.awaitSpeaks("streamworker")
	u.t.Logf("%s: %d rebalances for %d restarts", what, u.generation()-before, len(u.instances))
}

func (u *upgrade) stop(i int) {
	u.t.Helper()
	p := u.instances[i]
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(limit); code != 0 {
		u.t.Fatalf("%s ended with exit code %d", p.Name, code)
	}
	for _, e := range p.Events() {
		if e.Level == "ERROR" {
			u.t.Errorf("%s: %s", p.Name, e.Msg)
		}
	}
	u.instances[i] = nil
}

// awaitShare waits until an instance runs its part of the partitions, and lets it work for a while.
func (u *upgrade) awaitShare(i int) {
	u.t.Helper()
	id := instanceNames[i]
	harness.Until(u.t, limit, id+" runs its share", func() bool {
		if !u.instances[i].Running() {
			u.t.Fatalf("%s has ended", id)
		}
		return len(u.Status().Instance(id).Active) == copyPartitions/len(instanceNames)
	})
	u.goOn()
}

// goOn lets the group work for a while.
func (u *upgrade) goOn() {
	u.t.Helper()
	sent := u.load.Sent()
	harness.Until(u.t, limit, "more was sent", func() bool { return u.load.Sent() > sent+1000 })
}

// awaitPlain waits until each plain consumer has its part.
func (u *upgrade) awaitPlain() {
	u.t.Helper()
	for _, p := range u.plain {
		if p != nil {
			harness.Until(u.t, limit, "each consumer has its share", func() bool {
				n, _ := p.state()
				return int(n) == copyPartitions/len(u.plain)
			})
		}
	}
}

func (u *upgrade) awaitSpeaks(protocol string) {
	u.t.Helper()
	admin := kadm.NewClient(u.Kafka.Client(u.t))
	var last kadm.DescribedGroup
	harness.Until(u.t, limit, "the group speaks "+protocol, func() bool {
		groups, err := admin.DescribeGroups(u.t.Context(), u.Name)
		last = groups[u.Name]
		return err == nil && last.State == "Stable" && last.Protocol == protocol
	})
}

// generation is the newest that a member has told of.
func (u *upgrade) generation() int32 {
	newest := u.Status().Generation
	for _, p := range u.plain {
		if p != nil {
			_, g := p.state()
			newest = max(newest, g)
		}
	}
	return newest
}

// exact stops the load and compares how often each key was sent and copied.
func (u *upgrade) exact() {
	u.t.Helper()
	u.load.Stop()
	want := u.load.Table()
	got := map[string]int64{}
	cl := u.Kafka.Client(u.t, kgo.ConsumeTopics(u.Output()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	read := func(for_ time.Duration, until func() bool) {
		ctx, cancel := context.WithTimeout(u.t.Context(), for_)
		defer cancel()
		for ctx.Err() == nil && !until() {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got[string(r.Key)]++ })
		}
	}
	missing := func() (n int64) {
		for key, sent := range want {
			n += max(0, sent-got[key])
		}
		return n
	}
	read(limit, func() bool { return missing() == 0 })
	read(time.Second, func() bool { return false }) // nothing may follow
	var above, total int64
	for key, n := range got {
		above, total = above+max(0, n-want[key]), total+n
	}
	if missing() != 0 || above != 0 {
		u.t.Errorf("%d records are missing and %d are too many", missing(), above)
	}
	u.t.Logf("%d records, each copied once", total)
}

// plainConsumer is a running program of package plain.
type plainConsumer struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.Closer
	done chan struct{}
	err  error // of its end

	mu                sync.Mutex
	partitions, round int32
}

// plainPrograms are built when the first test needs them.
var plainPrograms = sync.OnceValue(func() error {
	for name, dir := range map[string]string{"kgo": "integration/plain/kgo", "sarama": "integration/plain/sarama"} {
		build := exec.Command("go", "build", "-o", filepath.Join(harness.Root(), "bin", "plain-"+name), ".")
		build.Dir = filepath.Join(harness.Root(), dir)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building the consumer of %s: %w\n%s", name, err, out)
		}
	}
	return nil
})

func (u *upgrade) startPlain() *plainConsumer {
	u.t.Helper()
	if err := plainPrograms(); err != nil {
		u.t.Fatal(err)
	}
	args := []string{u.Kafka.Address, u.Name, u.Input(), u.Output(), u.strategy}
	p := &plainConsumer{t: u.t, done: make(chan struct{})}
	if u.client == "java" {
		p.cmd = exec.Command(filepath.Join(harness.Root(), "scripts", "kafka.sh"),
			append([]string{"java", filepath.Join(harness.Root(), "integration", "plain", "java", "Plain.java")}, args...)...)
	} else {
		p.cmd = exec.Command(filepath.Join(harness.Root(), "bin", "plain-"+u.client), args...)
	}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		u.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(u.Dir, fmt.Sprintf("plain-%d.log", time.Now().UnixNano())))
	if err != nil {
		u.t.Fatal(err)
	}
	p.cmd.Stderr = said
	if err := p.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	go p.follow(out)
	u.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if text, _ := os.ReadFile(said.Name()); u.t.Failed() && len(text) > 0 {
			u.t.Logf("a consumer of %s wrote: %.3000s", u.client, text)
		}
		_ = said.Close()
	})
	return p
}

func (p *plainConsumer) follow(out io.Reader) {
	defer close(p.done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var n, generation int32
		if _, err := fmt.Sscanf(lines.Text(), "assigned %d %d", &n, &generation); err == nil {
			p.mu.Lock()
			p.partitions, p.round = n, generation
			p.mu.Unlock()
		}
	}
	p.err = p.cmd.Wait()
}

// state is the last assignment: how many partitions, in which generation.
func (p *plainConsumer) state() (partitions, generation int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.partitions, p.round
}

// end lets the consumer close as its users close it.
func (p *plainConsumer) end() {
	p.t.Helper()
	_ = p.in.Close()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.t.Fatal("a plain consumer does not end")
	}
	if p.err != nil {
		p.t.Errorf("a plain consumer ended with %v", p.err)
	}
}
