package deploy

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokersEnv names a real Kafka; without it the tests use kfake.
const brokersEnv = "STREAMWORKER_TEST_BROKERS"

// application is one with its topics on a Kafka.
type application struct {
	name, brokers string
	admin         *kadm.Client
}

func newApplication(t *testing.T) *application {
	t.Helper()
	a := &application{name: "deploy-test-" + strings.ToLower(rand.Text()[:8]), brokers: os.Getenv(brokersEnv)}
	if a.brokers == "" {
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		a.brokers = c.ListenAddrs()[0]
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(a.brokers, ",")...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	a.admin = kadm.NewClient(cl)
	if _, err := a.admin.CreateTopics(t.Context(), 4, 1, nil, a.name+"-in", a.name+"-out"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = a.admin.DeleteTopics(context.Background(), a.name+"-in", a.name+"-out", a.name+"-control", a.name+"-counts-changelog")
	})
	return a
}

// members counts those of the group.
func (a *application) members(t *testing.T) int {
	t.Helper()
	groups, err := a.admin.DescribeGroups(t.Context(), a.name)
	if err != nil {
		t.Fatal(err)
	}
	return len(groups[a.name].Members)
}

// install writes the configuration of an instance.
func (s *service) install(instance string, a *application) {
	s.t.Helper()
	s.write(instance+".yaml", fmt.Sprintf(`
app: %[1]s
kafka: {brokers: [%[2]q], heartbeat: 200ms}
scale_down_timeout: 1m
streams:
  - name: events
    from: {topic: %[1]s-in, value: bytes}
    steps:
      - count: {store: counts}
      - to: {topic: %[1]s-out, value: int}
`, a.name, a.brokers))
}

func (s *service) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.root, "etc", name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// The unit file's commands start and stop an instance, as the environment file says when it is stopped.
func TestUnitStartsAndStops(t *testing.T) {
	for name, c := range map[string]struct {
		stop    string // the environment file
		members int    // in the group after the stop
	}{
		"no file": {"", 2},
		"keep":    {"STOP=keep\n", 2},
		"release": {"STOP=release\n", 1},
		"drain":   {"# live\nSTOP=drain\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApplication(t)
			s := newService(t)
			s.install("words-1", a)
			s.install("words-2", a)
			stays := s.start("words-1")
			stays.awaitTold("READY=1")
			r := s.start("words-2")
			r.awaitTold("READY=1")
			r.awaitTold("STATUS=running: 2 active")
			r.awaitTold("WATCHDOG=1")
			if told := r.told(); slices.Contains(told, "STOPPING=1") {
				t.Errorf("stops already: %q", told)
			}
			if c.stop != "" {
				s.write("words-2.env", c.stop)
			}
			if code := s.stop("words-2"); code != 0 {
				t.Errorf("ExecStop: exit code %d", code)
			}
			r.ends(0)
			r.awaitTold("STOPPING=1")
			if n := a.members(t); n != c.members {
				t.Errorf("%d members in the group, want %d", n, c.members)
			}
		})
	}
}

// What systemd does besides ExecStop: SIGTERM when there is no time for it, and ExecStop after an instance that has ended
// by itself.
func TestUnitOtherEnds(t *testing.T) {
	s := newService(t)
	s.install("words", newApplication(t))

	r := s.start("words")
	r.awaitTold("READY=1")
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.ends(0)

	r = s.start("words")
	r.awaitTold("READY=1")
	out, err := exec.Command(binary, "leave", "--now", "--state-dir", filepath.Join(s.root, "var", "words")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.ends(11)
	if !s.codes("SuccessExitStatus")[11] {
		t.Error("a leave counts as a failure")
	}
	if code := s.stop("words"); code == 0 || !strings.HasPrefix(s.one("ExecStop"), "-") {
		t.Errorf("ExecStop of an instance that has ended: exit code %d, and %q makes that a failure of the unit", code, s.one("ExecStop"))
	}
}

// Each exit code of run is restarted, or is not, as docs/operations.md says.
func TestUnitRestarts(t *testing.T) {
	s := newService(t)
	if s.one("Restart") != "on-failure" {
		t.Fatalf("Restart=%s", s.one("Restart"))
	}
	success, never := s.codes("SuccessExitStatus"), s.codes("RestartPreventExitStatus")
	for code, want := range map[int]bool{0: false, 1: true, 2: true, 3: false, 10: false, 11: false, 12: false, 13: false, 14: true, 18: false} {
		if got := code != 0 && !success[code] && !never[code]; got != want {
			t.Errorf("exit code %d: restarts %t, want %t", code, got, want)
		}
	}
	for code := range success {
		if !never[code] {
			t.Errorf("exit code %d before READY=1 is restarted", code)
		}
	}
}

// systemd itself accepts the unit file.
func TestUnitVerify(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	data, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(unitFile))
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), "/usr/local/bin/streamworker", binary)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	// The exposure is between 0 and 10; the option counts in tenths.
	if out, err := exec.Command(analyze, "security", "--offline=yes", "--no-pager", "--threshold=20", path).CombinedOutput(); err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
}
