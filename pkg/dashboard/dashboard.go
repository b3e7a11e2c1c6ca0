package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/topology"
)

// Group gives the last status of every instance; with an error, those that it knew before.
type Group interface {
	Read(ctx context.Context) ([]control.Status, error)
}

// Config is what a Dashboard needs.
type Config struct {
	App, Version string
	Self         func() control.Status // of the instance that serves it; answers at once
	Group        Group
	Orders       Orders // nil: it only shows
	Topology     topology.Graph
	Logger       *slog.Logger
}

// Dashboard answers requests. It does nothing on its own.
type Dashboard struct {
	cfg Config
	log *slog.Logger

	mu     sync.Mutex // held while a document is made
	madeAt time.Time
	plain  []byte
	zipped []byte
}

const (
	// freshFor is how long a document is given out before the next one is made.
	freshFor = 400 * time.Millisecond
	// groupTimeout bounds the question for the others' statuses; this instance is shown without an answer too.
	groupTimeout = 800 * time.Millisecond
)

// New returns a dashboard.
func New(cfg Config) *Dashboard {
	return &Dashboard{cfg: cfg, log: cfg.Logger.With("component", "dashboard")}
}

//go:embed web
var web embed.FS

// Pages serves what a browser loads; none of it is secret.
func (d *Dashboard) Pages() http.Handler {
	root, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the directory is part of the program
	}
	files := http.FileServerFS(root)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead, r.URL.Path != "/" && strings.HasSuffix(r.URL.Path, "/"):
			http.NotFound(w, r)
		default:
			files.ServeHTTP(w, r)
		}
	})
}

// API answers below /api/v1/.
func (d *Dashboard) API() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/overview", d.overview)
	mux.HandleFunc("GET /api/v1/topology", func(w http.ResponseWriter, _ *http.Request) { d.write(w, http.StatusOK, d.cfg.Topology) })
	mux.HandleFunc("POST /api/v1/leave", func(w http.ResponseWriter, r *http.Request) { d.order(w, r, d.leave) })
	mux.HandleFunc("POST /api/v1/cancel", func(w http.ResponseWriter, r *http.Request) { d.order(w, r, d.cancel) })
	return mux
}

func (d *Dashboard) overview(w http.ResponseWriter, r *http.Request) {
	plain, zipped, err := d.document()
	if err != nil {
		d.write(w, http.StatusInternalServerError, failure{err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "Accept-Encoding")
	body := plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		body = zipped
	}
	if _, err := w.Write(body); err != nil {
		d.log.Debug("an answer was not taken", "error", err)
	}
}

// document gives the present document. Those who ask while it is made wait for it.
func (d *Dashboard) document() (plain, zipped []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.madeAt) < freshFor {
		return d.plain, d.zipped, nil
	}
	// Not the request's context: the document is for all who wait.
	ctx, cancel := context.WithTimeout(context.Background(), groupTimeout)
	defer cancel()
	plain, err = json.Marshal(d.look(ctx))
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(plain); err != nil {
		return nil, nil, err
	}
	if err := z.Close(); err != nil {
		return nil, nil, err
	}
	d.madeAt, d.plain, d.zipped = time.Now(), plain, b.Bytes()
	return d.plain, d.zipped, nil
}

type failure struct {
	Error string `json:"error"`
}

func (d *Dashboard) write(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		d.log.Debug("an answer was not taken", "error", err)
	}
}
