package admin

import (
	"net"
	"testing"
)

// arriving is a listener to which connections come from addresses of the test's choice.
type arriving struct {
	net.Listener
	next chan net.Conn
}

func (l arriving) Accept() (net.Conn, error) {
	if c, ok := <-l.next; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// from is a connection from somewhere.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// One client cannot take the connections of all others.
func TestConnectionsOfOneAddress(t *testing.T) {
	incoming := arriving{next: make(chan net.Conn, 8)}
	l := newPerAddress(incoming, 2)
	knock := func(ip string) (client net.Conn) {
		client, server := net.Pipe()
		t.Cleanup(func() { _ = client.Close() })
		incoming.next <- from{server, &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}
		return client
	}
	accept := func() net.Conn {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	knock("192.0.2.1")
	knock("::ffff:192.0.2.1") // the same
	first, second := accept(), accept()
	refused := knock("192.0.2.1")
	knock("2001:db8::1")
	knock("2001:db8::2") // of one network
	refusedToo := knock("2001:db8::3")
	knock("192.0.2.2")
	others := []net.Conn{accept(), accept(), accept()}
	for i, want := range []string{"2001:db8::1", "2001:db8::2", "192.0.2.2"} {
		if got := others[i].RemoteAddr().(*net.TCPAddr).IP.String(); got != want {
			t.Errorf("connection %d is from %s, want %s", i, got, want)
		}
	}
	for _, c := range []net.Conn{refused, refusedToo} {
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("a connection beyond the bound is open")
		}
	}
	_ = first.Close()
	_ = first.Close() // counts once
	knock("192.0.2.1")
	third := accept()
	late := knock("192.0.2.1")
	close(incoming.next)
	if _, err := l.Accept(); err == nil {
		t.Error("a third connection of one address was accepted")
	}
	if _, err := late.Write([]byte("x")); err == nil {
		t.Error("it is open")
	}
	for _, c := range append(others, second, third) {
		_ = c.Close()
	}
	if len(l.open) > 0 {
		t.Errorf("still counted: %v", l.open)
	}
}
