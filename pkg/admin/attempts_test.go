package admin

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// guarded is a server with a clock of its own; ask sends a token from an address and returns the status code.
type guarded struct {
	t    *testing.T
	now  time.Time
	log  bytes.Buffer
	h    http.Handler
	head http.Header // of the last answer
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{t: t, now: time.Unix(1_700_000_000, 0)}
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	g.h = Access{Token: token}.guard(next, newAttempts(func() time.Time { return g.now }), slog.New(slog.NewTextHandler(&g.log, nil)))
	return g
}

func (g *guarded) ask(from, authorization string) int {
	g.t.Helper()
	r := request(g.t, http.MethodGet, "http://x/api/x", authorization)
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	g.h.ServeHTTP(w, r)
	g.head = w.Header()
	return w.Code
}

func TestWrongTokensAreBounded(t *testing.T) {
	g := newGuarded(t)
	const attacker, other = "10.0.0.1:1000", "10.0.0.2:1000"
	for range 3 * attemptsBurst { // the right token, and none, are no guesses
		if code := g.ask(attacker, "Bearer "+token); code != http.StatusOK {
			t.Fatalf("the right token: %d", code)
		}
		if code := g.ask(attacker, ""); code != http.StatusUnauthorized {
			t.Fatalf("no token: %d", code)
		}
	}
	for i := range attemptsBurst {
		if code := g.ask(fmt.Sprintf("10.0.0.1:%d", i+1), "Bearer wrong"); code != http.StatusUnauthorized {
			t.Fatalf("wrong token %d: %d", i, code)
		}
	}
	if n := strings.Count(g.log.String(), "many wrong tokens"); n != 1 || !strings.Contains(g.log.String(), "address=10.0.0.1") || strings.Contains(g.log.String(), "Bearer") {
		t.Errorf("the log says it %d times: %s", n, g.log.String())
	}
	for _, text := range []string{"wrong", token} { // what is guessed now is not even compared
		if code := g.ask(attacker, "Bearer "+text); code != http.StatusTooManyRequests || g.head.Get("Retry-After") != "1" {
			t.Errorf("after %d wrong tokens: %d, Retry-After %s", attemptsBurst, code, g.head.Get("Retry-After"))
		}
	}
	if code := g.ask(other, "Bearer "+token); code != http.StatusOK {
		t.Errorf("from another address: %d", code)
	}
	g.now = g.now.Add(attemptEvery)
	if code := g.ask(attacker, "Bearer wrong"); code != http.StatusUnauthorized {
		t.Errorf("after a wait: %d", code)
	}
	if code := g.ask(attacker, "Bearer "+token); code != http.StatusTooManyRequests {
		t.Errorf("the wait was for one: %d", code)
	}
	g.now = g.now.Add(attemptEvery)
	if code := g.ask(attacker, "Bearer "+token); code != http.StatusOK {
		t.Errorf("the right token after a wait: %d", code)
	}
}

// An attacker with a network of addresses has no more attempts, nor more memory.
func TestAttemptsFromMany(t *testing.T) {
	g := newGuarded(t)
	for i := range attemptsBurst + 1 {
		want := http.StatusUnauthorized
		if i == attemptsBurst {
			want = http.StatusTooManyRequests
		}
		if code := g.ask(fmt.Sprintf("[2001:db8::%x]:1", i+1), "Bearer wrong"); code != want {
			t.Errorf("address %d of one network: %d, want %d", i, code, want)
		}
	}
	a := newAttempts(func() time.Time { return g.now })
	from := func(i int) *http.Request {
		r := request(t, http.MethodGet, "http://x/", "")
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)
		return r
	}
	refused := 0
	for i := range 2 * maxAddresses {
		if wait, _ := a.take(from(i)); wait > 0 {
			refused++
		}
	}
	if len(a.buckets) > maxAddresses+1 || refused != maxAddresses-attemptsBurst {
		t.Errorf("%d addresses are remembered, %d attempts refused", len(a.buckets), refused)
	}
	g.now = g.now.Add(attemptsBurst * attemptEvery)
	if wait, _ := a.take(from(3 * maxAddresses)); wait > 0 || len(a.buckets) > 2 {
		t.Errorf("later: wait %s, %d addresses are remembered", wait, len(a.buckets))
	}
}
