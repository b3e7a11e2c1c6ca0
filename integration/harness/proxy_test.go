package harness

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo answers on every connection what it is sent; it tells of all it gets.
func echo(t *testing.T) (address string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	all := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 100)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					all <- string(buf[:n])
					c.Write(buf[:n]) //nolint:errcheck // the client may be gone
				}
			}()
		}
	}()
	return l.Addr().String(), all
}

func newProxy(t *testing.T, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := NewProxy(l, to)
	t.Cleanup(p.Close)
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// read waits for exactly this answer.
func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != want {
		t.Fatalf("read %q, %v; want %q", buf, err, want)
	}
}

// nothing fails the test if an answer comes within a moment.
func nothing(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, io.EOF) {
		t.Fatalf("read %d bytes, %v; nothing should come", n, err)
	}
}

func TestProxyHoldsRequests(t *testing.T) {
	to, got := echo(t)
	p := newProxy(t, to)
	c := dial(t, p)
	write(t, c, "one")
	read(t, c, "one")
	p.Hold(true, false)
	write(t, c, "two")
	nothing(t, c)
	if len(got) != 1 {
		t.Error("a held request has arrived")
	}
	p.Heal(false)
	read(t, c, "two")
}

func TestProxyHoldsAnswers(t *testing.T) {
	to, got := echo(t)
	p := newProxy(t, to)
	c := dial(t, p)
	p.Hold(false, true)
	write(t, c, "one")
	if text := <-got; text != "one" {
		t.Errorf("the request arrived as %q", text)
	}
	nothing(t, c)
	p.Heal(false)
	read(t, c, "one")
}

// TestProxyDeliversForTheDead delivers a request whose sender has ended meanwhile.
func TestProxyDeliversForTheDead(t *testing.T) {
	to, got := echo(t)
	p := newProxy(t, to)
	c := dial(t, p)
	write(t, c, "zero")
	read(t, c, "zero")
	<-got
	p.Hold(true, true)
	write(t, c, "one")
	c.Close()
	p.Heal(false)
	if text := <-got; text != "one" {
		t.Errorf("the request arrived as %q", text)
	}
}

func TestProxyDrops(t *testing.T) {
	to, got := echo(t)
	p := newProxy(t, to)
	c := dial(t, p)
	write(t, c, "zero")
	read(t, c, "zero")
	<-got
	p.Hold(true, true)
	write(t, c, "one")
	p.Heal(true)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is not broken")
	}
	c = dial(t, p)
	write(t, c, "two")
	read(t, c, "two")
	if text := <-got; text != "two" {
		t.Errorf("a dropped request arrived: %q", text)
	}
}

func TestProxyRefuses(t *testing.T) {
	to, _ := echo(t)
	p := newProxy(t, to)
	old := dial(t, p)
	write(t, old, "zero")
	read(t, old, "zero")
	p.Refuse()
	young, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil { // it may be refused as early as this
		young = old
	}
	defer young.Close()
	for _, c := range []net.Conn{old, young} {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a refused connection answers, or waits: %v", err)
		}
	}
	p.Heal(false)
	c := dial(t, p)
	write(t, c, "one")
	read(t, c, "one")
}
