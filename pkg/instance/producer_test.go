package instance

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// TestFencedConn closes a connection while a part of what was written waits for a receiver that does not read.
func TestFencedConn(t *testing.T) {
	for _, expired := range []bool{false, true} {
		t.Run(map[bool]string{false: "leased", true: "expired"}[expired], func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			far, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			var over atomic.Bool
			c := &fencedConn{Conn: conn, expired: func(time.Time) bool { return over.Load() }}

			wrote := 0
			for err == nil {
				if err := c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				var n int
				n, err = c.Write(make([]byte, 64<<10))
				wrote += n
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("filling the connection: %v", err)
			}
			over.Store(expired)
			if expired {
				if n, err := c.Write([]byte("late")); n != 0 || !errors.Is(err, errExpired) {
					t.Errorf("a write after the lease: %d bytes, %v", n, err)
				}
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			read, err := io.Copy(io.Discard, far)
			if expired && (err == nil || read >= int64(wrote)) {
				t.Errorf("all %d bytes arrived after the lease (%v)", read, err)
			}
			if !expired && (err != nil || read != int64(wrote)) {
				t.Errorf("%d of %d bytes arrived (%v)", read, wrote, err)
			}
		})
	}
}
