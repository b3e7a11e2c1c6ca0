package browser

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// app has two streams, one with a repartition topic and one with bad records. Learners are slow, so that there is something to see.
const app = `
app: word-count
kafka: {brokers: ["%s"], heartbeat: 500ms}
learners: {acceptable_lag: 50, bandwidth: 64KiB/s}
admin: {listen: "127.0.0.1:0", allow_actions: true%s}
log: {format: json}
streams:
  - name: lines
    from: {topic: lines, value: string}
    steps:
      - flat_map: split(lower(value), " ")
      - filter: value != ""
      - rekey: value
      - count: {store: counts}
      - to: {topic: counts, value: int}
  - name: orders
    from: {topic: orders, value: json, on_error: dead_letter}
    steps:
      - filter: value.amount > 0
      - sum: {store: revenue, value: float(value.amount)}
      - to: {topic: revenue, value: float}
`

// world is a Kafka in memory, input for it, and instances as processes.
type world struct {
	t       *testing.T
	dir     string
	binary  string
	brokers string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "swb") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{t: t, dir: dir, binary: filepath.Join(dir, "streamworker")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", w.binary, "./cmd/streamworker")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder(),
		kfake.SeedTopics(8, "lines", "counts"), kfake.SeedTopics(4, "orders", "revenue", "word-count-dead-letter"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w.brokers = strings.Join(c.ListenAddrs(), ",")
	return w
}

// start runs an instance and returns the address of its dashboard.
func (w *world) start(id, adminKeys string, labels ...string) string {
	w.t.Helper()
	file := filepath.Join(w.dir, id+".yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, app, w.brokers, adminKeys), 0o600); err != nil {
		w.t.Fatal(err)
	}
	args := []string{"run", "-c", file, "--instance-id", id, "--state-dir", filepath.Join(w.dir, id)}
	for _, l := range labels {
		args = append(args, "--label", l)
	}
	cmd := exec.CommandContext(context.Background(), w.binary, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	address, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &e) == nil && e.Msg == "serving metrics and health" {
				address <- e.Address
			}
			if testing.Verbose() && !strings.Contains(lines.Text(), `"level":"INFO"`) {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
		}
		_ = cmd.Wait() // how it ended is not what this test is about
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have left already
		<-ended
	})
	select {
	case a := <-address:
		return "http://" + a
	case <-ended:
		w.t.Fatalf("%s has ended", id)
	}
	return ""
}

// load sends every word once, then lines and orders until the test ends. One order in fifty is none.
func (w *world) load(words, perSecond int) {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.brokers))
	if err != nil {
		w.t.Fatal(err)
	}
	// Long words make much state of few records.
	name := func(i int) string {
		return fmt.Sprintf("word%06d%x", i, sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)}))
	}
	word := func() string { return name(rand.IntN(words)) }
	send := func(topic, key, value string) {
		cl.Produce(context.Background(), &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}, nil)
	}
	for i := range words / 10 {
		var line []string
		for j := range 10 {
			line = append(line, name(10*i+j))
		}
		send("lines", fmt.Sprint(i), strings.Join(line, " "))
	}
	if err := cl.Flush(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	w.t.Cleanup(func() { close(stop); <-stopped; cl.Close() })
	go func() {
		defer close(stopped)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			for range perSecond / 20 {
				send("lines", word(), word()+" "+word()+" "+word())
				order := fmt.Sprintf(`{"amount": %d}`, rand.IntN(90)+10)
				if rand.IntN(50) == 0 {
					order = "no order"
				}
				send("orders", fmt.Sprintf("shop-%d", rand.IntN(200)), order)
			}
		}
	}()
}

// processed waits until the instances have read so many records.
func (w *world) processed(address string, n int64) {
	w.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Second) {
		var o struct {
			Instances []struct{ Counts struct{ In int64 } }
		}
		resp, err := http.Get(address + "/api/v1/overview")
		if err != nil {
			w.t.Fatal(err)
		}
		err = json.NewDecoder(resp.Body).Decode(&o)
		_ = resp.Body.Close()
		if err != nil {
			w.t.Fatal(err)
		}
		sum := int64(0)
		for _, i := range o.Instances {
			sum += i.Counts.In
		}
		if sum >= n {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("only %d records of %d are processed", sum, n)
		}
	}
}
