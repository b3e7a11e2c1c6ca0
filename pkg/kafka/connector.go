package kafka

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

// connectTimeout bounds dialling a broker and the TLS handshake with it.
const connectTimeout = 10 * time.Second

// DialFunc opens a connection to host:port.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Connector gives clients their way to the cluster. Clients of one Connector share tokens.
type Connector struct {
	settings  Connection
	mechanism sasl.Mechanism // nil: no authentication
	warn      *warner
}

// NewConnector returns a Connector that has touched nothing yet. Failures that a running client goes on trying to get
// over are logged as warnings.
func NewConnector(settings Connection, log *slog.Logger) *Connector {
	c := &Connector{settings: settings, warn: &warner{log: log, last: make(map[string]time.Time)}}
	c.mechanism = c.newMechanism()
	return c
}

// Options are those of a client: addresses, TLS, authentication. dial replaces the way to an address, below TLS; nil: TCP.
func (c *Connector) Options(dial DialFunc) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.settings.Brokers...),
		c.Dialer(dial),
		// A connection that ends before its first answer is one to a broker that is about to end.
		kgo.AlwaysRetryEOF(),
	}
	if c.mechanism != nil {
		opts = append(opts, kgo.SASL(c.mechanism))
	}
	return opts
}

// Dialer is the option that replaces the way to an address of Options.
func (c *Connector) Dialer(dial DialFunc) kgo.Opt {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		return c.connect(ctx, dial, network, address)
	})
}

// connect opens a connection. Everything that goes wrong with TLS is an error of dialling: the client then
// tries again, or another broker, as it does when nobody listens.
func (c *Connector) connect(ctx context.Context, dial DialFunc, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if !c.settings.TLS.Enabled {
		return &plainConn{Conn: raw, address: address}, nil
	}
	conn, err := c.secure(ctx, raw, address)
	if err != nil {
		_ = raw.Close() // nothing was sent on it
		if ctx.Err() == nil {
			c.warn.about(err)
		}
		return nil, &net.OpError{Op: "dial", Net: network, Addr: raw.RemoteAddr(), Err: err}
	}
	return &tlsConn{Conn: conn, address: address, settings: c.settings.TLS, warn: c.warn}, nil
}

func (c *Connector) secure(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	t := c.settings.TLS
	cfg, err := t.Config("kafka.tls", time.Now())
	if err != nil {
		return nil, &refusal{text: err.Error(), final: true, err: err}
	}
	if cfg.ServerName == "" {
		if cfg.ServerName, _, err = net.SplitHostPort(address); err != nil {
			return nil, err
		}
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, explainHandshake(err, address, t)
	}
	return conn, nil
}

// plainConn knows a broker that speaks TLS by the alert that it answers with.
type plainConn struct {
	net.Conn
	address string
	read    bool
}

// An alert begins with its record type and the major version. No answer of Kafka does: its size would be 350 MB.
const alertRecord, majorVersion = 21, 3

func (c *plainConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.read && n > 1 && b[0] == alertRecord && b[1] == majorVersion {
		return 0, &refusal{text: c.address + " speaks TLS, and this client does not: set kafka.tls, or use the brokers' plain-text port", final: true}
	}
	c.read = c.read || n > 0
	return n, err
}

// tlsConn explains the alerts of a broker that has looked at this client's certificate: with TLS 1.3 they come
// after the handshake.
type tlsConn struct {
	net.Conn
	address  string
	settings TLS
	warn     *warner
	read     bool
}

func (c *tlsConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 && err != nil && !c.read {
		if explained := explainFirstRead(err, c.address, c.settings); explained != nil {
			c.warn.about(explained)
			return 0, explained
		}
	}
	c.read = c.read || n > 0
	return n, err
}

// warnEvery is the least time between two warnings of one text.
const warnEvery = time.Minute

// warner logs what a client meets again and again.
type warner struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]time.Time
}

func (w *warner) about(err error) {
	text, now := err.Error(), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.last[text]) < warnEvery {
		return
	}
	for old, at := range w.last {
		if now.Sub(at) >= warnEvery {
			delete(w.last, old)
		}
	}
	w.last[text] = now
	w.log.Warn("no connection to a broker", "error", text)
}
