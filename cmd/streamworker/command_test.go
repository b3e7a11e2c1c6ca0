package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/leave"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell runs command lines in this process.
type shell struct {
	signals  chan os.Signal
	answers  string        // to questions; "": nobody can be asked
	patience time.Duration // with Kafka; default 20 s
	stdout   string
	stderr   string
}

func (s *shell) run(t *testing.T, args ...string) int {
	t.Helper()
	var out, errOut syncBuffer
	code := execute(args, &env{
		out: &out, errOut: &errOut, lookup: os.LookupEnv, environ: os.Environ, signals: s.signals, patience: cmp.Or(s.patience, 20*time.Second),
		in: strings.NewReader(s.answers), asks: s.answers != "",
		exit: func(code int) { t.Errorf("exit at once with %d", code) },
	})
	s.stdout, s.stderr = out.String(), errOut.String()
	return code
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const words = `app: words
kafka: {brokers: [127.0.0.1:1]}
streams:
  - name: lines
    from: {topic: lines}
    steps:
      - count: {store: counts}
      - to: {topic: counts, value: int}
`

// Every mistake says what is wrong and what to do, and has its exit code.
func TestMistakes(t *testing.T) {
	good := write(t, "words.yaml", words)
	seed := "../../examples/scenarios/scale-down.yaml"
	bad := write(t, "bad.yaml", strings.Replace(words, "count:", "cuont:", 1))
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"rnu", exitUsage, "unknown command"},
		{"run", exitUsage, "-c FILE"},
		{"run -c", exitUsage, "flag needs an argument"},
		{"run --nope", exitUsage, "unknown flag"},
		{"run extra", exitUsage, "See 'streamworker run --help'"},
		{"run -c " + good + " --label pool", exitUsage, "want name=value"},
		{"run -c " + bad, exitConfig, "bad.yaml:7:9"},
		{"run -c /nowhere.yaml", exitError, "no such file"},
		{"topology", exitUsage, "accepts 1 arg"},
		{"topology " + bad, exitConfig, "bad.yaml:7:9"},
		{"topology " + good + " -o png", exitUsage, "want text or dot or mermaid or svg or json"},
		{"test", exitUsage, "requires at least 1 arg"},
		{"test " + bad, exitConfig, "bad.yaml:7:9"},
		{"test " + good, exitError, "words.yaml has no cases: write them into"},
		{"test " + good + " --run (", exitUsage, "--run: "},
		{"test " + good + " --input x --run y", exitUsage, "does not go with --input"},
		{"test " + good + " " + good + " --input x", exitUsage, "--input takes one topology, got 2"},
		{"test " + good + " --input /nowhere.json", exitError, "/nowhere.json"},
		{"status", exitUsage, "-c FILE or --state-dir DIR on the instance's host, or --brokers ADDRESS --app NAME"},
		{"status --brokers x:1", exitUsage, "--app NAME"},
		{"status --app words", exitUsage, "--brokers ADDRESS"},
		{"status --state-dir /nowhere", exitNotRunning, "no instance is running on this host with this state directory: /nowhere"},
		{"simulate", exitUsage, "accepts 1 arg"},
		{"simulate " + seed + " --compare eager,lazy", exitUsage, "want eager, stable"},
		{"simulate " + seed + " --compare eager,eager", exitUsage, "twice"},
		{"simulate " + seed + " --plot /nowhere/x.html", exitError, "--plot"},
		{"simulate " + good, exitConfig, "words.yaml:1:1"},
		{"dev extra", exitUsage, "unknown command"},
		{"dev --rate 0", exitUsage, "want 1 to"},
		{"dev --for 2s --leave-after 3s", exitUsage, "--leave-after 3s: the stream lasts 2s"},
		{"dev --for soon", exitUsage, "invalid duration"},
		{"dev -o yaml", exitUsage, "want text or json"},
		{"dev -c " + bad, exitConfig, "bad.yaml:7:9"},
		{"dev -c /nowhere.yaml", exitError, "no such file"},
		{"dev --log /nowhere/x.log", exitError, "--log"},
		{"leave", exitUsage, "-c FILE or --state-dir DIR"},
		{"leave --state-dir /nowhere", exitNotRunning, "no instance is running"},
		{"leave --brokers x:1 --app words", exitUsage, "--instance ID or --selector"},
		{"leave --state-dir /nowhere --instance a", exitUsage, "go through Kafka"},
		{"leave --state-dir /nowhere --instance a --selector b=c", exitUsage, "exclude each other"},
		{"leave --state-dir /nowhere --selector pool", exitUsage, "want label=value"},
		{"leave --state-dir /nowhere --timeout 0s", exitUsage, "--now"},
		{"leave --state-dir /nowhere --timeout soon", exitUsage, "10m"},
		{"leave --state-dir /nowhere --timeout 1m --now", exitUsage, "exclude each other"},
		{"stop", exitUsage, "-c FILE or --state-dir DIR"},
		{"stop --state-dir /nowhere --how gently", exitUsage, "want keep or release or drain or kubernetes"},
		{"stop --state-dir /nowhere", exitNotRunning, "no instance is running"},
		{"probe --state-dir /nowhere", exitUsage, "accepts 1 arg"},
		{"probe well --state-dir /nowhere", exitUsage, "invalid argument"},
		{"probe ready", exitUsage, "-c FILE or --state-dir DIR"},
		{"probe live --state-dir /nowhere", exitNotRunning, "no instance is running"},
		{"reset", exitUsage, "-c FILE"},
		{"reset -c " + bad, exitConfig, "bad.yaml:7:9"},
		{"reset -c " + good, exitUsage, "--yes to delete, --dry-run"},
		{"doctor", exitUsage, "-c FILE"},
		{"doctor -c " + bad, exitConfig, "bad.yaml:7:9"},
		{"leave --state-dir /nowhere --cancel --wait", exitUsage, "--cancel goes with neither"},
	} {
		var s shell
		if code := s.run(t, strings.Fields(c.line)...); code != c.code || !strings.Contains(s.stderr, c.want) {
			t.Errorf("%s: exit code %d, want %d; %q, want %q", c.line, code, c.code, s.stderr, c.want)
		}
		if s.stdout != "" {
			t.Errorf("%s: stdout %q", c.line, s.stdout)
		}
	}
}

func TestTopologyVersionHelp(t *testing.T) {
	good := write(t, "words.yaml", words)
	for _, c := range []struct {
		line string
		want []string
	}{
		{"topology " + good, []string{"lines", "counts"}},
		{"topology " + good + " -o dot", []string{"digraph", "lines"}},
		{"topology " + good + " --format mermaid", []string{"flowchart", "lines"}},
		{"topology " + good + " --format svg", []string{"<svg ", "lines", "counts", "</svg>"}},
		{"topology " + good + " -o json", []string{`"subtopologies"`, `"lines"`}},
		{"version", []string{"streamworker ", "commit ", "go1."}},
		{"--help", []string{"Examples:", "run", "leave", "status", "topology", "test", "simulate", "dev", "version", "completion", "exit-codes"}},
		{"leave --help", []string{"--selector pool=blue --wait"}},
		{"exit-codes --help", []string{"10  run: marked as leaving, every task was handed over"}},
		{"completion bash", []string{"bash completion"}},
	} {
		var s shell
		code := s.run(t, strings.Fields(c.line)...)
		for _, w := range c.want {
			if code != exitOK || !strings.Contains(s.stdout, w) {
				t.Errorf("%s: exit code %d, no %q in %q", c.line, code, w, s.stdout)
			}
		}
	}
	var s shell
	var b build
	if code := s.run(t, "version", "-o", "json"); code != exitOK || json.Unmarshal([]byte(s.stdout), &b) != nil || b.Go == "" {
		t.Errorf("version -o json: %d %q", code, s.stdout)
	}
}

func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	var s shell
	if code := s.run(t, "man", dir); code != exitOK {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
	for name, want := range map[string]string{"streamworker.1": "streamworker-leave(1)", "streamworker-leave.1": "give everything up at once", "streamworker-config-check.1": "skip"} {
		if page, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(strings.ReplaceAll(string(page), "\\-", "-"), want) {
			t.Errorf("%s: no %q, %v", name, want, err)
		}
	}
}

// What a scenario gives is tested with the scenarios; here, that the command passes it on.
func TestSimulate(t *testing.T) {
	const file = "../../examples/scenarios/scale-down.yaml"
	var s shell
	if code := s.run(t, "simulate", file); code != exitOK || !strings.Contains(s.stdout, "S2(assigned: [T3], revoked: [T4], learning: [])") {
		t.Errorf("exit code %d: %s %s", code, s.stdout, s.stderr)
	}
	var result struct {
		Rebalances []any
		Left       []string
		Metrics    struct {
			Rebalances    int
			MaxGroupBytes int `json:"max_group_bytes"`
		}
	}
	code := s.run(t, "simulate", file, "-o", "json")
	if err := json.Unmarshal([]byte(s.stdout), &result); code != exitOK || err != nil ||
		len(result.Rebalances) != 3 || result.Metrics.Rebalances != 3 || len(result.Left) != 1 || result.Metrics.MaxGroupBytes == 0 {
		t.Errorf("exit code %d: %+v, %v", code, result, err)
	}
	var both map[string]any
	plot := filepath.Join(t.TempDir(), "plot.html")
	code = s.run(t, "simulate", file, "--compare", "eager,stable", "-o", "json", "--plot", plot)
	if err := json.Unmarshal([]byte(s.stdout), &both); code != exitOK || err != nil || both["eager"] == nil || both["stable"] == nil {
		t.Errorf("exit code %d: %s, %v", code, s.stdout, err)
	}
	if page, err := os.ReadFile(plot); err != nil || !bytes.Contains(page, []byte("<svg")) {
		t.Errorf("the plot: %v", err)
	}
	if code := s.run(t, "simulate", file, "--plot", plot); code != exitOK {
		t.Errorf("a plot of one run: %d %s", code, s.stderr)
	}
}

// application is a Kafka with the control topic of the application "words".
type application struct {
	brokers string
	bus     *control.Bus
}

func newApplication(t *testing.T) *application {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	cl, err := kgo.NewClient(append(control.Opts(), kgo.SeedBrokers(c.ListenAddrs()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	a := &application{brokers: strings.Join(c.ListenAddrs(), ","), bus: control.NewBus(cl, "words", slog.New(slog.DiscardHandler))}
	if err := a.bus.EnsureTopic(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return a
}

var incarnation = assign.Incarnation{StartMs: 1, Random: 2}

func (a *application) put(t *testing.T, instance string, state control.State, change func(*control.Status)) {
	t.Helper()
	s := control.Status{Instance: instance, Incarnation: incarnation, Generation: 3, State: state}
	if change != nil {
		change(&s)
	}
	if err := a.bus.PutStatus(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func (a *application) flags(args ...string) []string {
	return append(args, "--brokers", a.brokers, "--app", "words")
}

func TestStatusFromAnywhere(t *testing.T) {
	a := newApplication(t)
	a.put(t, "a", control.Draining, func(s *control.Status) {
		s.Active, s.Lag, s.Labels = []string{"0_0", "0_1"}, map[string]int64{"0_1": 7}, map[string]string{"pool": "blue"}
	})
	a.put(t, "b", control.Running, func(s *control.Status) {
		s.Learning = []control.Learning{{Task: "0_0", Ready: true}, {Task: "0_1", Lag: 12345}}
		s.Fail("0_1", errors.New("opening the state of task 0_1: no space left on device"), 3)
		s.FailedTasks += 2
	})
	a.put(t, "c", control.Drained, func(s *control.Status) { s.Left = control.LeftDrained })
	var s shell
	if code := s.run(t, a.flags("status", "-o", "json")...); code != exitOK {
		t.Fatalf("exit code %d, %s", code, s.stderr)
	}
	var got bytes.Buffer
	if err := json.Compact(&got, []byte(s.stdout)); err != nil {
		t.Fatal(err)
	}
	want := `{"app":"words","generation":3,"instances":[` +
		`{"id":"a","state":"draining","labels":{"pool":"blue"},"active":["0_0","0_1"],"learning":[],"standby":[]},` +
		`{"id":"b","state":"running","labels":{},"active":[],"learning":[{"task":"0_0","lag":0,"ready":true},{"task":"0_1","lag":12345,"ready":false}],"standby":[]}],` +
		`"tasks":[{"id":"0_0","active":"a","learner":"b","lag":0},{"id":"0_1","active":"a","learner":"b","lag":7}]}`
	if got.String() != want {
		t.Errorf("got  %s\nwant %s", got.String(), want)
	}

	if code := s.run(t, a.flags("status")...); code != exitOK {
		t.Fatalf("exit code %d, %s", code, s.stderr)
	}
	wantText := `words: 2 instances, 2 tasks, generation 3

INSTANCE  STATE     ACTIVE   LEARNING  STANDBY  LABELS
a         draining  0_0,0_1  -         -        pool=blue
b         running   -        0_0,0_1   -        -

LEARNER  TASK  FROM  BEHIND
b        0_0   a     ready
b        0_1   a     12,345 changes

TASK  ACTIVE  INPUT LAG
0_1   a       7

CANNOT GO ON  INSTANCE  FAILURES  ERROR
0_1           b         3         opening the state of task 0_1: no space left on device
and 2 more

a is draining: 2 tasks left, no timeout

c is gone: handed everything over, last seen N ago
`
	if got := regexp.MustCompile(`last seen \S+ ago`).ReplaceAllString(s.stdout, "last seen N ago"); got != wantText {
		t.Errorf("got:\n%s\nwant:\n%s", got, wantText)
	}

	code := s.run(t, "status", "--brokers", a.brokers, "--app", "typo")
	if code != exitError || !strings.Contains(s.stderr, "is the application's name, typo, right?") {
		t.Errorf("an unknown application: %d %s", code, s.stderr)
	}
}

func TestWatchEndsByCtrlC(t *testing.T) {
	a := newApplication(t)
	a.put(t, "a", control.Running, nil)
	s := shell{signals: make(chan os.Signal, 1)}
	done := make(chan int, 1)
	var got shell
	go func() {
		got = s
		done <- got.run(t, a.flags("status", "--watch", "-o", "json")...)
	}()
	time.Sleep(100 * time.Millisecond)
	s.signals <- os.Interrupt
	if code := <-done; code != exitOK && code != exitInterrupted {
		t.Errorf("exit code %d: %s", code, got.stderr)
	}
}

func TestUnreachableKafka(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out, errOut syncBuffer
	code := execute([]string{"status", "--brokers", l.Addr().String(), "--app", "words"}, &env{out: &out, errOut: &errOut, patience: 200 * time.Millisecond})
	if code != exitError || !strings.Contains(errOut.String(), "cannot reach Kafka at "+l.Addr().String()) {
		t.Errorf("exit code %d: %s", code, errOut.String())
	}
}

func TestLeaveFromAnywhere(t *testing.T) {
	a := newApplication(t)
	blue := func(s *control.Status) { s.Labels = map[string]string{"pool": "blue"} }
	a.put(t, "a", control.Running, blue)
	a.put(t, "b", control.Running, blue)
	a.put(t, "c", control.Running, nil)
	marks := func() map[string]control.Mark {
		t.Helper()
		list, err := a.bus.ReadMarks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := make(map[string]control.Mark)
		for _, mark := range list {
			m[mark.Instance] = mark
		}
		return m
	}
	var s shell
	if code := s.run(t, a.flags("leave", "--selector", "pool=blue")...); code != exitOK || s.stdout != "a: marked as leaving\nb: marked as leaving\n" {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
	if m := marks(); len(m) != 2 || m["a"].Incarnation != incarnation || m["a"].DeadlineMs != 0 || m["a"].Now || m["a"].By == "" {
		t.Errorf("marks %+v", m)
	}
	if code := s.run(t, a.flags("leave", "--instance", "a", "--timeout", "1h", "-o", "json")...); code != exitOK ||
		s.stdout != `{"instances":[{"id":"a","outcome":"marked as leaving"}]}`+"\n" {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
	if at := time.UnixMilli(marks()["a"].DeadlineMs); time.Until(at) > time.Hour || time.Until(at) < 30*time.Minute {
		t.Errorf("deadline %s", at)
	}
	if code := s.run(t, a.flags("leave", "--instance", "b", "--cancel")...); code != exitOK || s.stdout != "b: cancelled\n" {
		t.Errorf("exit code %d: %q %s", code, s.stdout, s.stderr)
	}
	if code := s.run(t, a.flags("leave", "--instance", "c", "--timeout", "none")...); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
	if m := marks(); len(m) != 2 || m["c"].DeadlineMs != control.NoDeadline {
		t.Errorf("marks %+v", m)
	}
	if code := s.run(t, a.flags("leave", "--instance", "x")...); code != exitError || !strings.Contains(s.stderr, "application words: no instance x: running are a, b, c") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}

// obey plays an instance that goes through states when it is marked.
func (a *application) obey(t *testing.T, instance string, then func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.bus.Run(ctx, control.Handler{Mark: func(m control.Mark) {
			if m.Instance == instance {
				then()
			}
		}})
	}()
	t.Cleanup(func() { stop(); <-done })
}

func TestLeaveAndWait(t *testing.T) {
	active := func(tasks ...string) func(*control.Status) {
		return func(s *control.Status) { s.Active = tasks }
	}
	left := func(why string) func(*control.Status) {
		return func(s *control.Status) { s.Left = why }
	}
	for name, c := range map[string]struct {
		args   []string
		then   func(*testing.T, *application)
		code   int
		stdout string
		stderr []string
	}{
		"drained": {
			then: func(t *testing.T, a *application) {
				a.put(t, "a", control.Draining, active("0_0"))
				time.Sleep(2 * waitInterval)
				a.put(t, "a", control.Drained, left(control.LeftDrained))
			},
			code: exitOK, stdout: "a: drained\n", stderr: []string{"a: 1 task left: 0_0 (learned by b)", "a: drained"},
		},
		"timed out": {
			then: func(t *testing.T, a *application) { a.put(t, "a", control.Stopping, left(control.LeftTimeout)) },
			code: exitUndrained, stdout: "a: left with tasks not handed over\n", stderr: []string{"restore them"},
		},
		"given up as asked": {
			args: []string{"--now"},
			then: func(t *testing.T, a *application) { a.put(t, "a", control.Stopping, left(control.LeftNow)) },
			code: exitOK, stdout: "a: left with tasks not handed over\n",
		},
		"cancelled": {
			then: func(t *testing.T, a *application) {
				a.put(t, "a", control.Draining, active("0_0"))
				time.Sleep(2 * waitInterval)
				a.put(t, "a", control.Running, active("0_0"))
			},
			code: exitCancelled, stdout: "a: cancelled\n", stderr: []string{"the leave was cancelled"},
		},
		"all are leaving": {
			then: func(t *testing.T, a *application) {
				a.put(t, "b", control.Draining, nil)
				a.put(t, "a", control.Draining, active("0_0"))
				time.Sleep(3 * waitInterval)
				a.put(t, "a", control.Stopping, left(control.LeftTimeout))
			},
			code: exitUndrained, stdout: "a: left with tasks not handed over\n", stderr: []string{allLeaving},
		},
		"replaced by another run": {
			then: func(t *testing.T, a *application) {
				a.put(t, "a", control.Running, func(s *control.Status) { s.Incarnation.StartMs++ })
			},
			code: exitError, stdout: "a: gone before it was drained\n", stderr: []string{"as after a failure"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApplication(t)
			a.put(t, "a", control.Running, active("0_0"))
			a.put(t, "b", control.Running, func(s *control.Status) { s.Learning = []control.Learning{{Task: "0_0", Lag: 9}} })
			a.obey(t, "a", func() { c.then(t, a) })
			var s shell
			code := s.run(t, a.flags(append([]string{"leave", "--instance", "a", "--wait"}, c.args...)...)...)
			if code != c.code || s.stdout != c.stdout {
				t.Errorf("exit code %d, want %d; %q, want %q; %s", code, c.code, s.stdout, c.stdout, s.stderr)
			}
			for _, w := range c.stderr {
				if !strings.Contains(s.stderr, w) {
					t.Errorf("no %q in %q", w, s.stderr)
				}
			}
		})
	}
}

func TestWaitEndsByCtrlC(t *testing.T) {
	a := newApplication(t)
	a.put(t, "a", control.Running, nil)
	s := shell{signals: make(chan os.Signal, 1)}
	a.obey(t, "a", func() { s.signals <- os.Interrupt })
	if code := s.run(t, a.flags("leave", "--instance", "a", "--wait")...); code != exitInterrupted || !strings.Contains(s.stderr, "go on leaving") {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
}

// onHost is an instance with a socket, that can vanish.
type onHost struct {
	mu      sync.Mutex
	status  control.Status
	orders  []leave.Deadline
	stops   []string // how
	cancels int
	marked  func()
}

func (o *onHost) Status() control.Status { o.mu.Lock(); defer o.mu.Unlock(); return o.status }
func (o *onHost) Live() bool             { return true }
func (o *onHost) Ready() bool            { return o.Status().Generation > 0 }

func (o *onHost) Leave(_ context.Context, d leave.Deadline, _ string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.orders = append(o.orders, d)
	if o.marked != nil {
		go o.marked()
	}
	return nil
}

func (o *onHost) Cancel(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cancels++
	return nil
}

func (o *onHost) stop(_ context.Context, s admin.StopOrder) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stops = append(o.stops, s.How)
	if o.marked != nil {
		go o.marked()
	}
	return nil
}

func (o *onHost) serve(t *testing.T) (dir string, vanish func()) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "swc") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	l, err := admin.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := admin.NewServer(admin.Config{App: "words", Instance: o, Stop: o.stop, Logger: slog.New(slog.DiscardHandler)}).ServeLocal(ctx, l); err != nil {
			t.Error(err)
		}
	}()
	vanish = func() { stop(); <-done }
	t.Cleanup(func() { vanish(); _ = os.RemoveAll(dir) })
	return dir, vanish
}

func TestOnTheHost(t *testing.T) {
	o := &onHost{status: control.Status{Instance: "a", Incarnation: incarnation, State: control.Running, Generation: 4, Active: []string{"0_0"}}}
	dir, _ := o.serve(t)
	var s shell
	if code := s.run(t, "status", "--state-dir", dir); code != exitOK || !strings.Contains(s.stdout, "words: 1 instance, 1 task, generation 4") {
		t.Errorf("status: %d %q %s", code, s.stdout, s.stderr)
	}
	for _, args := range [][]string{{}, {"--now"}, {"--timeout", "none"}} {
		if code := s.run(t, append([]string{"leave", "--state-dir", dir}, args...)...); code != exitOK || s.stdout != "a: marked as leaving\n" {
			t.Errorf("leave %s: %d %q %s", args, code, s.stdout, s.stderr)
		}
	}
	if len(o.orders) != 3 || o.orders[0] != leave.Default || o.orders[1] != leave.Now || o.orders[2] != leave.Never {
		t.Errorf("orders %v", o.orders)
	}
	if code := s.run(t, "leave", "--state-dir", dir, "--cancel"); code != exitOK || s.stdout != "a: cancelled\n" || o.cancels != 1 {
		t.Errorf("cancel: %d %q %s", code, s.stdout, s.stderr)
	}
}

// The process may be gone before its last status was asked for: its state directory tells how it ended.
func TestWaitOnTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		left string
		code int
	}{
		"drained":   {"drained", exitOK},
		"timed out": {"timeout", exitUndrained},
		"killed":    {"", exitError},
	} {
		t.Run(name, func(t *testing.T) {
			o := &onHost{status: control.Status{Instance: "a", Incarnation: incarnation, State: control.Running, Active: []string{"0_0"}}}
			dir, vanish := o.serve(t)
			o.marked = func() {
				o.mu.Lock()
				o.status.State = control.Draining
				o.mu.Unlock()
				time.Sleep(2 * waitInterval)
				rec := `{"v":1,"incarnation":"` + incarnation.String() + `","order":{"deadline":"none"},"left":"` + c.left + `"}`
				if err := os.WriteFile(filepath.Join(dir, leave.JournalFile), []byte(rec), 0o600); err != nil {
					t.Error(err)
				}
				vanish()
			}
			var s shell
			if code := s.run(t, "leave", "--state-dir", dir, "--wait"); code != c.code {
				t.Errorf("exit code %d, want %d: %q %s", code, c.code, s.stdout, s.stderr)
			}
		})
	}
}
