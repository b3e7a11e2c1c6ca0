package harness

import (
	"net"
	"sync"
	"sync/atomic"
)

// Proxy passes connections on to one address, and cuts them off as a broken network does.
type Proxy struct {
	to                string
	listener          net.Listener
	requests, answers *gate

	mu       sync.Mutex
	links    map[*link]struct{}
	refusing bool
	running  sync.WaitGroup
}

// link is one connection: from a client, and on to the address.
type link struct {
	client, server net.Conn
	dropped        atomic.Bool // what waits is not delivered any more
}

// NewProxy passes on what comes to the listener, until Close.
func NewProxy(listener net.Listener, to string) *Proxy {
	p := &Proxy{to: to, listener: listener, requests: newGate(), answers: newGate(), links: map[*link]struct{}{}}
	p.running.Go(p.accept)
	return p
}

// Hold stops requests, answers or both on their way. What waits is delivered by Heal.
func (p *Proxy) Hold(requests, answers bool) {
	if requests {
		p.requests.shut()
	}
	if answers {
		p.answers.shut()
	}
}

// Refuse breaks all connections, and every new one, until Heal.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = true
	p.drop()
}

// Heal lets everything pass again. With drop, connections that there are break, and what waits on them is lost.
func (p *Proxy) Heal(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = false
	if drop {
		p.drop()
	}
	p.requests.open()
	p.answers.open()
}

// drop breaks the connections; p.mu must be held.
func (p *Proxy) drop() {
	for l := range p.links {
		l.drop()
	}
}

func (l *link) drop() {
	l.dropped.Store(true)
	reset(l.client)
	l.server.Close()
}

// reset closes a connection as a host does that does not know it. To a client, the end of a stream before the first
// answer would be a broker that refuses it.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0) //nolint:errcheck // it is closed in any case
	}
	c.Close()
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.listener.Close()
	p.Refuse()
	p.Heal(true) // those that wait at a gate
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			reset(client)
			continue
		}
		l := &link{client: client, server: server}
		p.mu.Lock()
		p.links[l] = struct{}{}
		if p.refusing {
			l.drop()
		}
		p.mu.Unlock()
		p.running.Go(func() { p.carry(l) })
	}
}

func (p *Proxy) carry(l *link) {
	var both sync.WaitGroup
	both.Go(func() { l.pump(l.server, l.client, p.requests) })
	both.Go(func() { l.pump(l.client, l.server, p.answers) })
	both.Wait()
	l.client.Close()
	l.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// pump carries one direction to its end. What was sent before a connection's end arrives before it, even if it had
// to wait: the sender may be dead by then.
func (l *link) pump(to, from net.Conn, g *gate) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		g.wait()
		if l.dropped.Load() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				from.Close()
				return
			}
		}
		if err != nil {
			if half, ok := to.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
				to.Close()
			}
			return
		}
	}
}

// gate can be shut, so that those who come wait.
type gate struct {
	mu   sync.Mutex
	free chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{free: make(chan struct{})}
	close(g.free)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.free:
		g.free = make(chan struct{})
	default:
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.free:
	default:
		close(g.free)
	}
}

func (g *gate) wait() {
	g.mu.Lock()
	free := g.free
	g.mu.Unlock()
	<-free
}
