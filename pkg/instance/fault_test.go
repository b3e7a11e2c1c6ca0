package instance

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/leave"
)

// link is the network between one instance and Kafka. Cut, it carries nothing: what is written hangs until
// it is mended, and goes out then, as after a partition of the network.
type link struct {
	mu   sync.Mutex
	open chan struct{} // closed while the link carries
}

func newLink() *link {
	l := &link{open: make(chan struct{})}
	close(l.open)
	return l
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
}

func (l *link) carries(ctx context.Context) error {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) dial(ctx context.Context, network, host string) (net.Conn, error) {
	if err := l.carries(ctx); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, host)
	if err != nil {
		return nil, err
	}
	c := &linkConn{Conn: conn, link: l}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c, nil
}

type linkConn struct {
	net.Conn
	link *link
	ctx  context.Context // ends when the connection is closed
	stop context.CancelFunc
}

func (c *linkConn) Write(b []byte) (int, error) {
	if err := c.link.carries(c.ctx); err != nil {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *linkConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err := c.link.carries(c.ctx); err != nil {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *linkConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// checkAtLeast reads the output until every key's last count is at least what was sent.
func (b *bench) checkAtLeast() {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ConsumeTopics(b.app+"-out"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	got := map[string]int64{}
	short := func() (keys int) {
		for k, n := range b.sent {
			if got[k] < n {
				keys++
			}
		}
		return keys
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for short() > 0 && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value)) })
	}
	if n := short(); n > 0 {
		b.t.Fatalf("%d of %d keys have lost counts", n, len(b.sent))
	}
}

// checkComplete reads the output after a failure, until it has what the guarantee promises.
func (b *bench) checkComplete() {
	b.t.Helper()
	if b.guarantee == config.ExactlyOnce {
		b.check()
	} else {
		b.checkAtLeast()
	}
}

// An instance that is cut off from Kafka for longer than its session drops its tasks by its own clock, another
// one takes them, and once the network is back the first one takes its share again with nothing lost.
func TestInstanceCutOffFromKafkaLosesNothing(t *testing.T) {
	underBoth(t, 8, testInstanceCutOffFromKafkaLosesNothing)
}

func testInstanceCutOffFromKafkaLosesNothing(t *testing.T, b *bench) {
	b.mayAbort = true
	l := newLink()
	b.dialer = l.dial
	a := b.start("a")
	b.dialer = nil
	b.awaitActive(a, 8)
	c := b.start("b")
	b.await("the tasks are spread", func() bool { return len(a.Status().Active) == 4 && len(c.Status().Active) == 4 })
	stop := b.load()
	time.Sleep(200 * time.Millisecond)
	l.cut()
	b.awaitActive(c, 8) // when a's session is over
	b.await("a has dropped its tasks", func() bool { return len(a.Status().Active) == 0 })
	time.Sleep(300 * time.Millisecond)
	l.mend()
	b.await("a has some of the tasks again", func() bool { return len(a.Status().Active) == 4 && a.Ready() })
	stop()
	// Every task moves once more, with the state that the changelogs have.
	if err := c.Leave(context.Background(), leave.Default, "test"); err != nil {
		t.Fatal(err)
	}
	if err := b.end(c); !errors.Is(err, leave.ErrDrained) {
		t.Fatal(err)
	}
	b.send(1000, 200)
	b.checkComplete()
}

func TestFencedConnectionWritesOnlyUnderALease(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	over := false
	conn := &fencedConn{Conn: ours, expired: func(time.Time) bool { return over }}
	go func() {
		_, _ = conn.Write([]byte("in time"))
		over = true
		if _, err := conn.Write([]byte("late")); !errors.Is(err, errExpired) {
			t.Errorf("late write: %v", err)
		}
		_ = ours.Close()
	}()
	buf := make([]byte, 64)
	n, _ := theirs.Read(buf)
	if string(buf[:n]) != "in time" {
		t.Fatalf("read %q", buf[:n])
	}
	if n, err := theirs.Read(buf); err == nil {
		t.Fatalf("read %q after the lease was over", buf[:n])
	}
}

func TestTwoInstancesUnderOneName(t *testing.T) { underBoth(t, 4, testTwoInstancesUnderOneName) }

func testTwoInstancesUnderOneName(t *testing.T, b *bench) {
	b.mayAbort = true
	first := b.start("a")
	b.awaitActive(first, 4)
	b.send(500, 50)
	dir := b.dir
	b.dir = t.TempDir()
	time.Sleep(2 * time.Millisecond) // incarnations differ by their start
	second := b.start("a")
	b.dir = dir
	if err := b.end(first); !errors.Is(err, ErrSuperseded) {
		t.Fatalf("the first ended with %v, want superseded", err)
	}
	b.awaitActive(second, 4)
	b.send(500, 50)
	b.check()
}

func TestSecondProcessOnOneStateDirectory(t *testing.T) {
	underBoth(t, 4, testSecondProcessOnOneStateDirectory)
}

func testSecondProcessOnOneStateDirectory(t *testing.T, b *bench) {
	first := b.start("a")
	b.awaitActive(first, 4)
	second := b.start("a")
	if err := b.end(second); err == nil {
		t.Fatal("the second runs on the same directory")
	}
	first.Stop(config.Release)
	if err := b.end(first); err != nil {
		t.Fatal(err)
	}
}

func TestConnectionsThatEndAtOnce(t *testing.T) { underBoth(t, 4, testConnectionsThatEndAtOnce) }

// testConnectionsThatEndAtOnce lets every third connection end before its first answer, as those do to a broker that
// is about to end: that is no reason to give up.
func testConnectionsThatEndAtOnce(t *testing.T, b *bench) {
	dying, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dying.Close()
	go func() {
		for {
			c, err := dying.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1<<10)) // what is left unread would make it a reset
			_ = c.Close()
		}
	}()
	var dials atomic.Int64
	b.dialer = func(ctx context.Context, network, host string) (net.Conn, error) {
		if dials.Add(1)%3 == 0 {
			host = dying.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, host)
	}
	w := b.start("a")
	b.awaitActive(w, 4)
	b.send(2000, 100)
	b.check()
}
