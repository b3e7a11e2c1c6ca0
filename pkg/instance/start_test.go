package instance

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/config"
)

// TestBrokersThatGoDuringTheStart lets the brokers be out of reach for a while at several steps of an instance's start: it must wait for them, as it
// does when they are not there in the beginning.
func TestBrokersThatGoDuringTheStart(t *testing.T) {
	b := newBench(t, config.ExactlyOnce, 4)
	o := &outages{length: 1500 * time.Millisecond, at: map[kmsg.Key]bool{
		kmsg.DescribeConfigs: true, kmsg.ListOffsets: true, kmsg.Produce: true,
	}}
	b.dialer = o.dial
	w := b.start("a")
	b.awaitActive(w, 4)
	if left := o.left(); left > 0 {
		t.Errorf("%d of the outages did not take place", left)
	}
	b.send(2000, 100)
	b.check()
}

// TestStartOnANewTopic has a broker say that it does not know what another one has created: it hears of it later.
func TestStartOnANewTopic(t *testing.T) {
	b := newBench(t, config.AtLeastOnce, 2)
	if b.fake == nil {
		t.Skip("a real Kafka does not do it at will")
	}
	lags := b.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.UnknownTopicOrPartition, Count: 2})
	w := b.start("a")
	b.awaitActive(w, 2)
	if lags.Hits() != 2 {
		t.Error("no broker was behind")
	}
	b.send(200, 10)
	b.check()
}

// outages refuses and breaks connections for a while, once when the first request of each key in at is sent.
type outages struct {
	length time.Duration

	mu    sync.Mutex
	at    map[kmsg.Key]bool
	until time.Time
}

func (o *outages) left() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.at)
}

func (o *outages) now() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Before(o.until)
}

func (o *outages) dial(ctx context.Context, network, host string) (net.Conn, error) {
	if o.now() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, host)
	if err != nil {
		return nil, err
	}
	return &outageConn{Conn: conn, outages: o}, nil
}

type outageConn struct {
	net.Conn
	outages *outages
}

// Write sees a request at a time: its size in four bytes, then its key in two.
func (c *outageConn) Write(b []byte) (int, error) {
	o := c.outages
	o.mu.Lock()
	if key := kmsg.Key(binary.BigEndian.Uint16(b[4:])); o.at[key] && time.Now().After(o.until) {
		delete(o.at, key)
		o.until = time.Now().Add(o.length)
	}
	o.mu.Unlock()
	if o.now() {
		_ = c.Conn.Close()
		return 0, syscall.ECONNRESET
	}
	return c.Conn.Write(b)
}
