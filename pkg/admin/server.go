package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/leave"
)

// Instance is what is shown and ordered. Status, Live and Ready answer at once.
type Instance interface {
	Status() control.Status
	Live() bool  // it goes on; else only a restart helps
	Ready() bool // each of its tasks runs
	Leaver
}

// Leaver marks the instance as leaving and takes the mark back.
type Leaver interface {
	Leave(ctx context.Context, d leave.Deadline, by string) error
	Cancel(ctx context.Context) error
}

// Config is what a Server needs.
type Config struct {
	App      string
	Instance Instance
	Group    func(ctx context.Context) ([]control.Status, error) // the group's statuses; nil: not known here
	Stop     func(ctx context.Context, o StopOrder) error        // makes the process end; ErrRefused: it cannot do that
	Metrics  prometheus.Gatherer                                 // nil: none
	API      http.Handler                                        // answers below /api/; nil: none
	Pages    http.Handler                                        // the rest of the TCP side, for everybody; nil: none
	Access   Access                                              // to the TCP side
	Logger   *slog.Logger
}

// Reply is the answer to GET /status.
type Reply struct {
	App      string           `json:"app"`
	Instance control.Status   `json:"instance"`
	Group    []control.Status `json:"group,omitempty"` // the others too, as old as Kafka has them
	Error    string           `json:"error,omitempty"` // why Group is not there
}

// Order is the body of POST /leave.
type Order struct {
	Deadline leave.Deadline `json:"deadline"`
	By       string         `json:"by"`
}

// StopOrder is the body of POST /stop.
type StopOrder struct {
	How string `json:"how"` // keep, release or drain; empty: what SIGTERM does
	By  string `json:"by"`
}

// ErrRefused is returned by Config.Stop for an order that the instance cannot follow.
var ErrRefused = errors.New("refused")

type failure struct {
	Error string `json:"error"`
}

// answerTimeout bounds every answer; half of it is for the group's statuses.
const answerTimeout = 900 * time.Millisecond

// Server answers on the listeners that it is given.
type Server struct {
	cfg    Config
	log    *slog.Logger
	limits limits
}

// NewServer returns a server that listens nowhere yet.
func NewServer(cfg Config) *Server {
	return &Server{cfg: cfg, log: cfg.Logger.With("component", "admin"), limits: publicLimits}
}

// ServeLocal answers commands on this host until ctx ends: status, health, leave, cancel, stop, the API, and what net/http/pprof shows.
// It closes l.
func (s *Server) ServeLocal(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.status)
	mux.HandleFunc("POST /leave", s.leave)
	mux.HandleFunc("POST /cancel", s.cancel)
	mux.HandleFunc("POST /stop", s.stop)
	mux.HandleFunc("GET /livez", s.live)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	if s.cfg.API != nil {
		mux.Handle("/api/", s.cfg.API)
	}
	return s.serve(ctx, l, mux, Access{})
}

func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler, a Access) error {
	srv := &http.Server{
		Handler: h, MaxHeaderBytes: s.limits.headerBytes, TLSConfig: a.TLS, Protocols: new(http.Protocols),
		ReadHeaderTimeout: s.limits.header, ReadTimeout: s.limits.read, WriteTimeout: s.limits.write, IdleTimeout: s.limits.idle,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	srv.Protocols.SetHTTP1(true)
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		if srv.Shutdown(bounded) != nil {
			_ = srv.Close() // whoever still waits is cut off
		}
	})
	var err error
	if a.TLS != nil {
		err = srv.ServeTLS(l, "", "")
	} else {
		err = srv.Serve(l)
	}
	if stop() { // ctx did not end: the listener failed
		_ = srv.Close()
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	<-closed
	return nil
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	reply := Reply{App: s.cfg.App, Instance: s.cfg.Instance.Status()}
	reply.Instance.Seen = time.Now()
	if s.cfg.Group != nil && r.URL.Query().Has("group") {
		ctx, cancel := context.WithTimeout(r.Context(), answerTimeout/2)
		defer cancel()
		group, err := s.cfg.Group(ctx)
		if err != nil {
			reply.Error = err.Error()
		}
		reply.Group = group
	}
	s.write(w, http.StatusOK, reply)
}

func (s *Server) leave(w http.ResponseWriter, r *http.Request) {
	var o Order
	if s.read(w, r, &o) {
		s.order(w, r, func(ctx context.Context) error { return s.cfg.Instance.Leave(ctx, o.Deadline, o.By) })
	}
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request) {
	var o StopOrder
	if s.read(w, r, &o) {
		s.order(w, r, func(ctx context.Context) error { return s.cfg.Stop(ctx, o) })
	}
}

// read reads an order; false: the answer says why it cannot.
func (s *Server) read(w http.ResponseWriter, r *http.Request, order any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(order); err != nil {
		s.write(w, http.StatusBadRequest, failure{fmt.Sprintf("the order cannot be read: %v", err)})
		return false
	}
	return true
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) {
	s.order(w, r, s.cfg.Instance.Cancel)
}

func (s *Server) order(w http.ResponseWriter, r *http.Request, give func(context.Context) error) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	switch err := give(ctx); {
	case err == nil:
		s.write(w, http.StatusAccepted, struct{}{})
	case errors.Is(err, ErrRefused):
		s.write(w, http.StatusBadRequest, failure{err.Error()})
	case errors.Is(err, leave.ErrDone):
		s.write(w, http.StatusConflict, failure{err.Error()})
	default:
		s.write(w, http.StatusServiceUnavailable, failure{err.Error()})
	}
}

func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.Instance.Live() {
		fmt.Fprintln(w, "ok")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, "not live: the task manager hangs")
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.Instance.Ready() {
		fmt.Fprintln(w, "ok")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, "not ready:", s.cfg.Instance.Status().State)
}

func (s *Server) write(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.log.Debug("an answer was not taken", "error", err)
	}
}
