package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/leave"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type instance struct {
	status  control.Status
	dead    bool
	ready   bool
	err     error
	orders  []leave.Deadline
	by      string
	cancels int
}

func (i *instance) Status() control.Status { return i.status }
func (i *instance) Live() bool             { return !i.dead }
func (i *instance) Ready() bool            { return i.ready }
func (i *instance) Cancel(context.Context) error {
	i.cancels++
	return i.err
}

func (i *instance) Leave(_ context.Context, d leave.Deadline, by string) error {
	i.orders, i.by = append(i.orders, d), by
	return i.err
}

// shortDir is a state directory whose socket fits into what sockets allow.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "swa")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func serve(t *testing.T, l net.Listener, run func(context.Context, net.Listener) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

func local(t *testing.T, cfg Config) *Client {
	t.Helper()
	dir := shortDir(t)
	l, err := ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	serve(t, l, NewServer(cfg).ServeLocal)
	c, err := NewClient(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestStatus(t *testing.T) {
	in := &instance{status: control.Status{Instance: "a", State: control.Running, Active: []string{"0_1"}}}
	seen := time.UnixMilli(1_700_000_000_000).UTC()
	c := local(t, Config{App: "words", Instance: in, Group: func(context.Context) ([]control.Status, error) {
		return []control.Status{{Instance: "b", Seen: seen}}, nil
	}})
	r, err := c.Status(t.Context(), false)
	if err != nil || r.App != "words" || r.Instance.Instance != "a" || r.Instance.Active[0] != "0_1" || r.Instance.Stale(time.Now()) || r.Group != nil {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = c.Status(t.Context(), true)
	if err != nil || len(r.Group) != 1 || !r.Group[0].Seen.Equal(seen) {
		t.Errorf("with the group: %+v, %v", r, err)
	}
}

// A group that cannot be asked does not hold the answer up.
func TestStatusWithoutKafka(t *testing.T) {
	c := local(t, Config{Instance: &instance{}, Group: func(ctx context.Context) ([]control.Status, error) {
		<-ctx.Done()
		return nil, errors.New("Kafka does not answer")
	}})
	r, err := c.Status(t.Context(), true)
	if err != nil || r.Group != nil || r.Error != "Kafka does not answer" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestOrders(t *testing.T) {
	in := &instance{}
	c := local(t, Config{Instance: in})
	want := []leave.Deadline{leave.Default, leave.Never, leave.Now, leave.At(time.UnixMilli(1_700_000_000_123))}
	for _, d := range want {
		if err := c.Leave(t.Context(), d, "ops"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Cancel(t.Context()); err != nil || in.cancels != 1 || in.by != "ops" {
		t.Errorf("cancel: %v, %+v", err, in)
	}
	for i := range want {
		if in.orders[i] != want[i] {
			t.Errorf("order %d: %s, want %s", i, in.orders[i], want[i])
		}
	}
	in.err = leave.ErrDone
	if err := c.Cancel(t.Context()); err == nil || !strings.Contains(err.Error(), leave.ErrDone.Error()) {
		t.Errorf("refused: %v", err)
	}
	resp, err := c.http.Post("http://instance/leave", "", strings.NewReader(`{"deadline":"soon"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "is no deadline") {
		t.Errorf("a bad order: %s %s", resp.Status, body)
	}
}

func TestStopAndHealth(t *testing.T) {
	in := &instance{status: control.Status{State: control.Starting}}
	var orders []StopOrder
	c := local(t, Config{Instance: in, Stop: func(_ context.Context, o StopOrder) error {
		if o.How == "gently" {
			return fmt.Errorf("%w: what is %s?", ErrRefused, o.How)
		}
		orders = append(orders, o)
		return nil
	}})
	if err := c.Stop(t.Context(), "drain", "ops"); err != nil || len(orders) != 1 || orders[0] != (StopOrder{How: "drain", By: "ops"}) {
		t.Errorf("stop: %v, %+v", err, orders)
	}
	if err := c.Stop(t.Context(), "gently", "ops"); err == nil || !strings.Contains(err.Error(), "what is gently?") {
		t.Errorf("refused: %v", err)
	}
	if err := c.Live(t.Context()); err != nil {
		t.Errorf("live: %v", err)
	}
	if err := c.Ready(t.Context()); !errors.Is(err, ErrUnhealthy) || !strings.Contains(err.Error(), "not ready: starting") {
		t.Errorf("ready while starting: %v", err)
	}
	in.ready, in.dead = true, true
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	if err := c.Live(t.Context()); !errors.Is(err, ErrUnhealthy) || !strings.Contains(err.Error(), "hangs") {
		t.Errorf("live: %v", err)
	}
}

func TestListenUnix(t *testing.T) {
	dir := shortDir(t)
	c, err := NewClient(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context(), false); !errors.Is(err, ErrNotRunning) {
		t.Errorf("nobody there: %v", err)
	}

	// What a killed process leaves behind: a socket that nobody listens to.
	dead, err := net.Listen("unix", filepath.Join(dir, SocketFile))
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()
	if _, err := c.Status(t.Context(), false); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a dead socket: %v", err)
	}

	l, err := ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, SocketFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if _, err := ListenUnix(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a second process: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := ListenUnix(dir)
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	_ = again.Close()

	long := filepath.Join(dir, strings.Repeat("x", 100))
	if _, err := ListenUnix(long); err == nil || !strings.Contains(err.Error(), "shorter path") {
		t.Errorf("a long path: %v", err)
	}
}

func TestPublic(t *testing.T) {
	in := &instance{status: control.Status{State: control.Starting}}
	reg := prometheus.NewRegistry()
	hits := prometheus.NewCounter(prometheus.CounterOpts{Name: "hits_total", Help: "Hits."})
	reg.MustRegister(hits)
	hits.Inc()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, NewServer(Config{Instance: in, Metrics: reg, Logger: slog.New(slog.DiscardHandler)}).ServePublic)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path string) (int, string) {
		resp, err := client.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || body != "not ready: starting\n" {
		t.Errorf("readyz while starting: %d %q", code, body)
	}
	in.ready = true
	for path, want := range map[string]string{"/livez": "ok\n", "/readyz": "ok\n", "/metrics": "hits_total 1"} {
		if code, body := get(path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	in.dead = true
	if code, body := get("/livez"); code != http.StatusServiceUnavailable || body != "not live: the task manager hangs\n" {
		t.Errorf("livez of one that hangs: %d %q", code, body)
	}
	if code, _ := get("/status"); code != http.StatusNotFound {
		t.Errorf("the TCP side shows the status: %d", code)
	}
	resp, err := client.Post("http://"+l.Addr().String()+"/leave", "", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound || len(in.orders) != 0 {
		t.Errorf("the TCP side takes orders: %s", resp.Status)
	}
}
