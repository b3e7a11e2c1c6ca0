package group

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// The test binary runs itself as a member when this is set, to be killed: brokers, group, topic,
// partitions and the file of former members, separated by spaces.
const childEnv = "STREAMWORKER_TEST_CHILD"

func childArgs(k *cluster, cfg Config) string {
	s := cfg.Subtopologies[0]
	return strings.Join([]string{strings.Join(k.brokers, ","), cfg.Group, s.Topics[0], strconv.Itoa(int(s.Partitions)), cfg.FormerMemberFile}, " ")
}

func runChild() {
	args := strings.Fields(os.Getenv(childEnv))
	partitions, err := strconv.Atoi(args[3])
	if err != nil {
		panic(err)
	}
	brokers := kgo.SeedBrokers(strings.Split(args[0], ",")...)
	coordinator, err := NewCoordinator(args[1], brokers)
	if err != nil {
		panic(err)
	}
	m, err := NewMembership(Config{
		Options: []kgo.Opt{brokers}, Coordinator: coordinator,
		Group: args[1], ClientID: "child", FormerMemberFile: args[4],
		Session: 4 * time.Minute, Heartbeat: 100 * time.Millisecond, RebalanceTimeout: 4 * time.Minute,
		Subtopologies: []Subtopology{{Topics: []string{args[2]}, Partitions: int32(partitions), Stateful: true}},
		JoinWaiting:   func() { fmt.Println("waiting") },
	}, childHandler{})
	if err != nil {
		panic(err)
	}
	fmt.Println(m.Run(context.Background()))
}

type childHandler struct{}

func (childHandler) Report() assign.Report                   { return assign.Report{Instance: "child"} }
func (childHandler) Assigned(string, int32, []assign.TaskID) {}

func (childHandler) Revoke(_ func(assign.TaskID) bool, done func()) { done() }

func (childHandler) Plan(memberID string, generation int32, _ assign.MemberPlan) {
	fmt.Println("plan", memberID, generation)
}
func (childHandler) Lost(err error) { fmt.Println("lost", err) }

// child is a member in a process of its own.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startChild(t *testing.T, k *cluster, cfg Config) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childEnv+"="+childArgs(k, cfg))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

// wait reads until the child says something that starts with what; it returns the next word.
func (c *child) wait(what string) string {
	c.t.Helper()
	for c.lines.Scan() {
		if words := strings.Fields(c.lines.Text()); len(words) > 0 && words[0] == what {
			return strings.Join(words[1:min(len(words), 2)], "")
		}
	}
	c.t.Fatalf("the child ended without %q", what)
	return ""
}

// After kill -9 the next start removes the killed member: the round is over at once and not when the
// session of the killed one is, which outlasts the test.
func TestRestartAfterKill(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		other := k.start(cfg, "other")
		eventually(t, "one member", func() bool { return settled(4, other) })
		cfg.FormerMemberFile = filepath.Join(t.TempDir(), "member")
		first := startChild(t, k, cfg)
		killed := first.wait("plan")
		eventually(t, "the other has the plan of that round", func() bool { return len(other.generations()) == 2 })
		first.kill()

		started := time.Now()
		second := startChild(t, k, cfg)
		second.wait("waiting")
		waiting := time.Since(started)
		other.m.Rejoin() // what a hello on the control topic does
		id := second.wait("plan")
		t.Logf("after kill -9: join waits %v after the start of the process, plan after %v",
			waiting.Round(time.Millisecond), time.Since(started).Round(time.Millisecond))
		ids := k.members(cfg.Group)
		if slices.Contains(ids, killed) || !slices.Contains(ids, id) || len(ids) != 2 {
			t.Errorf("the group has %v; %s was killed, %s is new", ids, killed, id)
		}
		eventually(t, "the other has the plan", func() bool { return len(other.generations()) > 2 })
		if got := len(other.generations()) - 2; got != 1 {
			t.Errorf("%d rounds, want one", got)
		}
	})
}
