package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

// limits bound what a client can make the server hold.
type limits struct {
	header, read, write, idle time.Duration // how long a client may take
	headerBytes               int
	connections               int
	fromOne                   int // connections from one address
}

var publicLimits = limits{
	header: 3 * time.Second, read: 5 * time.Second, write: 15 * time.Second, idle: 30 * time.Second,
	headerBytes: 8 << 10, connections: 512, fromOne: 128,
}

// ServePublic shows metrics, health and the dashboard until ctx ends. It closes l. Health is for everybody, the rest
// for those whom Access admits; a listener that other hosts reach without any Access is refused by ErrOpen.
func (s *Server) ServePublic(ctx context.Context, l net.Listener) error {
	if err := s.cfg.Access.check(l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	mux, tries := http.NewServeMux(), newAttempts(time.Now)
	guard := func(h http.Handler) http.Handler { return s.cfg.Access.guard(h, tries, s.log) }
	mux.HandleFunc("GET /livez", s.live)
	mux.HandleFunc("GET /readyz", s.ready)
	if s.cfg.Metrics != nil {
		mux.Handle("GET /metrics", guard(promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{MaxRequestsInFlight: 4})))
	}
	if s.cfg.API != nil {
		mux.Handle("/api/", guard(http.NewCrossOriginProtection().Handler(s.cfg.API)))
	}
	if s.cfg.Pages != nil {
		mux.Handle("/", s.cfg.Pages)
	}
	return s.serve(ctx, netutil.LimitListener(newPerAddress(l, s.limits.fromOne), s.limits.connections), secure(mux), s.cfg.Access)
}

// secure tells browsers to trust nothing but what this server sends, and to keep nothing.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// fail answers with an error in the form of all answers.
func fail(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(failure{text}) // a client that does not take it has gone
}
