package admin

import (
	"net"
	"net/netip"
	"sync"
)

// perAddress is a listener that closes at once what one address opens beyond a bound: else one client, with no right to anything, could
// keep all connections to itself, and the probes of a supervisor, which then ends the process, outside.
type perAddress struct {
	net.Listener
	most int

	mu   sync.Mutex
	open map[netip.Addr]int
}

func newPerAddress(l net.Listener, most int) *perAddress {
	return &perAddress{Listener: l, most: most, open: make(map[netip.Addr]int)}
}

// Accept returns the next connection within the bound.
func (l *perAddress) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := addressOf(c.RemoteAddr().String())
		if l.count(addr) {
			return &counted{Conn: c, done: sync.OnceFunc(func() { l.discount(addr) })}, nil
		}
		_ = c.Close()
	}
}

func (l *perAddress) count(addr netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[addr] >= l.most {
		return false
	}
	l.open[addr]++
	return true
}

func (l *perAddress) discount(addr netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[addr]--; l.open[addr] == 0 {
		delete(l.open, addr)
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	done func()
}

// Close closes the connection.
func (c *counted) Close() error {
	c.done()
	return c.Conn.Close()
}
