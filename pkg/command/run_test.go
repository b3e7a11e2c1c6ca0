package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokersEnv names a real Kafka; the same tests run against kfake without it.
const brokersEnv = "STREAMWORKER_TEST_BROKERS"

func onEachKafka(t *testing.T, test func(t *testing.T, brokers string)) {
	t.Run("kfake", func(t *testing.T) {
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		test(t, strings.Join(c.ListenAddrs(), ","))
	})
	t.Run("kafka", func(t *testing.T) {
		if os.Getenv(brokersEnv) == "" {
			t.Skip("set " + brokersEnv + " to test on a real Kafka")
		}
		test(t, os.Getenv(brokersEnv))
	})
}

// process is `streamworker run` in this process.
type process struct {
	signals chan os.Signal
	code    chan int
	log     *syncBuffer
	dir     string
}

func start(t *testing.T, file, id string, args ...string) *process {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "swr") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	p := &process{signals: make(chan os.Signal, 4), dir: dir}
	p.run(t, file, id, args...)
	t.Cleanup(func() {
		p.signals <- syscall.SIGTERM
		select {
		case <-p.code:
		case <-time.After(time.Minute):
			t.Errorf("%s does not stop:\n%s", id, p.log)
		}
		_ = os.RemoveAll(dir)
	})
	return p
}

func (p *process) run(t *testing.T, file, id string, args ...string) {
	p.code, p.log = make(chan int, 1), new(syncBuffer)
	args = append([]string{"run", "-c", file, "--instance-id", id, "--state-dir", p.dir}, args...)
	go func() {
		p.code <- execute(args, &env{
			out: p.log, errOut: p.log, lookup: os.LookupEnv, environ: os.Environ, signals: p.signals, patience: 20 * time.Second,
			exit: func(code int) { t.Errorf("exit at once with %d", code) },
		})
	}()
}

// ends waits for the process to end and checks its exit code.
func (p *process) ends(t *testing.T, want int) {
	t.Helper()
	select {
	case code := <-p.code:
		if code != want {
			t.Errorf("exit code %d, want %d:\n%s", code, want, p.log)
		}
		p.code <- code
	case <-time.After(2 * time.Minute):
		t.Fatalf("still running:\n%s", p.log)
	}
}

func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ready(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}

// Two instances share an application; one is drained by a command, is started again, and both are stopped.
func TestRun(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers string) {
		app := "cmd-test-" + strings.ToLower(rand.Text()[:8])
		cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.DefaultProduceTopic(app+"-in"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
		adm := kadm.NewClient(cl)
		if _, err := adm.CreateTopics(t.Context(), 4, 1, nil, app+"-in", app+"-out"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = adm.DeleteTopics(context.Background(), app+"-in", app+"-out", app+"-control", app+"-counts-changelog")
		})
		file := write(t, "app.yaml", fmt.Sprintf(`
app: %s
kafka: {brokers: [%q], heartbeat: 200ms}
admin: {listen: "127.0.0.1:0"}
streams:
  - name: events
    from: {topic: %s-in, value: bytes}
    steps:
      - count: {store: counts}
      - to: {topic: %s-out, value: int}
`, app, brokers, app, app))
		for i := range 1000 {
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Key: fmt.Append(nil, i%100), Value: []byte("x")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}

		var s shell
		status := func() string {
			if s.run(t, "status", "--brokers", brokers, "--app", app, "-o", "json") != exitOK {
				return ""
			}
			return strings.Join(strings.Fields(s.stdout), "")
		}
		a := start(t, file, "a")
		await(t, "all tasks on a", func() bool { return strings.Contains(status(), `"active":["0_0","0_1","0_2","0_3"]`) })

		var second shell
		if code := second.run(t, "run", "-c", file, "--instance-id", "x", "--state-dir", a.dir); code != exitDirInUse ||
			!strings.Contains(second.stderr, "--state-dir") {
			t.Errorf("a second process on the directory: exit code %d: %s", code, second.stderr)
		}

		b := start(t, file, "b", "--label", "pool=blue")
		await(t, "two tasks each", func() bool {
			out := status()
			return strings.Count(out, `"state":"running"`) == 2 && !strings.Contains(out, `"active":[]`) && strings.Count(out, `"learning":[]`) == 2
		})

		if code := s.run(t, "leave", "--brokers", brokers, "--app", app, "--selector", "pool=blue", "--wait"); code != exitOK || !strings.Contains(s.stdout, "b: drained") {
			t.Errorf("leave: exit code %d: %q %s\n%s", code, s.stdout, s.stderr, b.log)
		}
		b.ends(t, exitDrained)
		await(t, "all tasks back on a", func() bool { return strings.Contains(status(), `"active":["0_0","0_1","0_2","0_3"]`) })

		<-b.code
		b.run(t, file, "b")
		await(t, "b again", func() bool { return strings.Contains(status(), `{"id":"b","state":"running"`) })
		if code := s.run(t, "status", "--state-dir", b.dir); code != exitOK || !strings.Contains(s.stdout, "2 instances") {
			t.Errorf("status on the host: %d %q %s", code, s.stdout, s.stderr)
		}
		if code := s.run(t, "leave", "-c", file, "--state-dir", b.dir, "--now", "--wait"); code != exitOK {
			t.Errorf("leave --now: exit code %d: %q %s", code, s.stdout, s.stderr)
		}
		b.ends(t, exitUndrained)

		a.signals <- syscall.SIGTERM
		a.ends(t, exitOK)
	})
}
