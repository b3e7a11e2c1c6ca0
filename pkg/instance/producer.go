package instance

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/topology"
)

// newProducer makes the client that writes output and changelogs. Its connections stop when the lease
// expires: a process that was paused for longer than its session must not send what it had buffered, as
// another instance may have written to the same changelog meanwhile. Under at least once they stop for good then,
// as it takes a moment to close them; under exactly once the brokers see to it by the producer's epoch.
func (i *Instance) newProducer(m *member, limits topology.Limits) (*kgo.Client, error) {
	expired := m.Expired
	if i.cfg.Guarantee != config.ExactlyOnce {
		expired = m.sinceNow()
	}
	dial := i.opts.Dialer
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	fenced := func(ctx context.Context, network, host string) (net.Conn, error) {
		conn, err := dial(ctx, network, host)
		if err != nil {
			return nil, err
		}
		return &fencedConn{Conn: conn, expired: expired}, nil
	}
	opts := []kgo.Opt{
		kgo.RecordPartitioner(tasks.Partitioner()),
		kgo.ProducerLinger(producerLinger),
		kgo.MaxBufferedRecords(maxBufferedRecords),
		kgo.MaxBufferedBytes(maxBufferedBytes),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 { return int32(limits.Of(topic)) }),
		kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression()),
		i.connector.Dialer(fenced),
	}
	if i.cfg.Guarantee == config.ExactlyOnce {
		opts = append(opts, kgo.TransactionalID(transactionalID(i.cfg.App, i.id)), kgo.TransactionTimeout(i.cfg.Kafka.TransactionTimeout))
	}
	return kgo.NewClient(i.kafkaOptions("-producer", opts...)...)
}

var errExpired = errors.New("the lease has expired: nothing more is written under it")

// fencedConn writes nothing once the lease has expired, and neither does the kernel after it is closed.
type fencedConn struct {
	net.Conn
	expired func(time.Time) bool
}

func (c *fencedConn) Write(b []byte) (int, error) {
	if c.expired(time.Now()) {
		return 0, errExpired
	}
	return c.Conn.Write(b)
}

// Close drops what the kernel has not sent yet, once the lease has expired: it would go on trying, and a network that heals
// after minutes would bring it to a broker long after another instance has written there.
func (c *fencedConn) Close() error {
	if tcp, ok := c.Conn.(interface{ SetLinger(seconds int) error }); ok && c.expired(time.Now()) {
		_ = tcp.SetLinger(0) // it fails for a broken connection, which sends nothing
	}
	return c.Conn.Close()
}
