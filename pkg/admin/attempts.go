package admin

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Bounds of wrong tokens from one address.
const (
	attemptsBurst = 20          // at once
	attemptEvery  = time.Second // and one more in each
	maxAddresses  = 4096        // that are told apart; the others share one bound
)

// attempts bounds how often clients may guess a token, by the address that they come from. An address that has used up what it may is not
// let in by the right token either, until it has waited: else it could go on guessing.
type attempts struct {
	now func() time.Time

	mu      sync.Mutex
	buckets map[netip.Addr]*bucket
}

// bucket has the attempts that are left, as of a time.
type bucket struct {
	left float64
	at   time.Time
}

func newAttempts(now func() time.Time) *attempts {
	return &attempts{now: now, buckets: make(map[netip.Addr]*bucket)}
}

// take uses up one attempt of the request's address. If none is left it says how long to wait; last says that it was the last one.
func (a *attempts) take(r *http.Request) (wait time.Duration, last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.bucket(addressOf(r.RemoteAddr))
	if b.left < 1 {
		return time.Duration((1 - b.left) * float64(attemptEvery)), false
	}
	b.left--
	return 0, b.left < 1
}

// giveBack says that the attempt was none: the token was right.
func (a *attempts) giveBack(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.bucket(addressOf(r.RemoteAddr))
	b.left = min(attemptsBurst, b.left+1)
}

// bucket is that of an address as of now. mu must be held.
func (a *attempts) bucket(addr netip.Addr) *bucket {
	now := a.now()
	b := a.buckets[addr]
	if b == nil && len(a.buckets) >= maxAddresses {
		for other, b := range a.buckets {
			if now.Sub(b.at) >= attemptsBurst*attemptEvery {
				delete(a.buckets, other) // full again
			}
		}
		if len(a.buckets) >= maxAddresses {
			addr = netip.Addr{}
			b = a.buckets[addr]
		}
	}
	if b == nil {
		b = &bucket{left: attemptsBurst, at: now}
		a.buckets[addr] = b
	}
	b.left = min(attemptsBurst, b.left+float64(now.Sub(b.at))/float64(attemptEvery))
	b.at = now
	return b
}

// addressOf is where a request or a connection comes from, of its remote host:port. Of IPv6, what one client usually has all of: the
// first 64 bits.
func addressOf(remote string) netip.Addr {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	addr := from.Addr().Unmap().WithZone("")
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}
