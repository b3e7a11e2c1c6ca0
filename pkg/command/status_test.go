package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
)

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
		s.BadGlobal("rates", 12, errors.New("record at rates[0] offset 7: value: no JSON"))
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
		`{"id":"a","state":"draining","labels":{"pool":"blue"},"capacity":1,"active":["0_0","0_1"],"learning":[],"standby":[],` +
		`"load":{"in":0,"out":0,"arriving":0,"lag":7,"threads":0,"busy":0,"headroom":1,"state_bytes":0,"free_bytes":0},"drain":{"tasks":2,"deadline_ms":0}},` +
		`{"id":"b","state":"running","labels":{},"capacity":1,"active":[],"learning":[{"task":"0_0","lag":0,"ready":true},{"task":"0_1","lag":12345,"ready":false}],"standby":[],` +
		`"load":{"in":0,"out":0,"arriving":0,"lag":0,"threads":0,"busy":0,"headroom":1,"state_bytes":0,"free_bytes":0},"drain":null}],` +
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

GLOBAL TABLE  INSTANCE  BAD RECORDS  ERROR
rates         b         12           record at rates[0] offset 7: value: no JSON

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
