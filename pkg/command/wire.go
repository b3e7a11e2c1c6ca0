package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/dashboard"
	"github.com/streamworker/streamworker/pkg/instance"
	"github.com/streamworker/streamworker/pkg/query"
	"github.com/streamworker/streamworker/pkg/telemetry"
)

var _ admin.Instance = (*instance.Instance)(nil)

// serve runs one instance together with its admin side until the instance ends.
func serve(ctx context.Context, e *env, cfg *config.Config) error {
	log := newLogger(e.errOut, cfg.Log)
	if err := os.MkdirAll(cfg.State.Dir, 0o750); err != nil {
		return fmt.Errorf("state directory: %w; set state.dir or --state-dir to a directory that can be written", err)
	}
	metrics := telemetry.New(thisBuild().Version)
	inst := instance.New(cfg, instance.Options{Logger: log, Events: metrics.Events(), PaceCollector: true})
	log = log.With("app", cfg.App, "instance", inst.ID()) // as the instance's own lines have it
	stopTraces, err := startTraces(ctx, e, cfg, inst, log)
	if err != nil {
		return err
	}
	defer stopTraces()
	group, err := newRemote(e, &place{brokers: cfg.Kafka.Brokers, app: cfg.App, kafka: cfg.Kafka.Connection})
	if err != nil {
		return err
	}
	defer group.close()
	// The socket comes first: it is held by one process, so a second one on the directory goes no further.
	socket, err := admin.ListenUnix(cfg.State.Dir)
	if err != nil {
		if errors.Is(err, admin.ErrInUse) {
			err = fmt.Errorf("%w: stop it first, or give each instance a directory of its own by --state-dir", err)
		}
		return err
	}
	access, err := adminAccess(cfg.Admin)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	listeners := []net.Listener{socket}
	if cfg.Admin.Listen != "" {
		l, err := net.Listen("tcp", cfg.Admin.Listen)
		if err != nil {
			return errors.Join(fmt.Errorf("admin.listen: %w; choose another address", err), socket.Close())
		}
		log.Info("serving metrics and health", "component", "admin", "address", l.Addr().String())
		if access.Token != "" && access.TLS == nil && !config.IsLoopback(l.Addr().String()) {
			log.Warn("tokens cross the network in clear: set admin.tls", "component", "admin")
		}
		listeners = append(listeners, l)
		inst.Advertise(adminURL(cfg.Admin, l.Addr(), access.TLS != nil))
	}

	metrics.Watch(inst)
	super := newSupervisor(e, inst, cfg, log)
	statuses := control.NewLatest(group.bus)
	board := newDashboard(cfg, inst, group.bus, statuses, log)
	api := http.NewServeMux()
	api.Handle("/", board.API())
	stores := query.NewHandler(query.Config{Instance: inst, Group: statuses, Topology: cfg.Topology, Logger: log})
	api.Handle(query.Path, stores)
	api.Handle(query.Path+"/", stores)
	server := admin.NewServer(admin.Config{App: cfg.App, Instance: inst, Metrics: metrics.Gatherer(), Access: access, Logger: log, Stop: super.order,
		API: api, Pages: board.Pages(),
		Group: func(ctx context.Context) ([]control.Status, error) { return group.bus.ReadStatuses(ctx) }})

	// The admin side answers until the instance has ended, also while that stops.
	answering, stopAnswering := context.WithCancel(ctx)
	var servers sync.WaitGroup
	for i, l := range listeners {
		run := server.ServeLocal
		if i > 0 {
			run = server.ServePublic
		}
		servers.Go(func() {
			if err := run(answering, l); err != nil {
				log.Error("the admin side answers no more", "component", "admin", "error", err)
			}
		})
	}
	defer func() { stopAnswering(); servers.Wait() }()

	ended := make(chan error, 1)
	go func() { ended <- inst.Run(ctx) }()
	return super.run(ended)
}

// adminAccess reads what decides who may use the TCP side.
func adminAccess(cfg config.Admin) (a admin.Access, err error) {
	a.Token = cfg.Token.Reveal()
	if cfg.TokenFile != "" {
		if a.Token, err = config.ReadToken("admin.token_file", cfg.TokenFile); err != nil {
			return a, err
		}
	}
	if cfg.TLS.Cert != "" {
		a.TLS, err = admin.TLSConfig(cfg.TLS.Cert, cfg.TLS.Key, cfg.TLS.ClientCA)
	}
	return a, err
}

// adminURL is where others reach the admin side.
func adminURL(cfg config.Admin, at net.Addr, secure bool) string {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return ""
		}
	}
	if listen, _, err := net.SplitHostPort(cfg.Listen); err == nil && net.ParseIP(listen) == nil {
		host = listen // a name, which a certificate may have
	}
	if cfg.Advertise != "" {
		if h, p, err := net.SplitHostPort(cfg.Advertise); err == nil {
			host, port = h, p
		} else {
			host = cfg.Advertise
		}
	}
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

func newDashboard(cfg *config.Config, inst *instance.Instance, bus *control.Bus, statuses *control.Latest, log *slog.Logger) *dashboard.Dashboard {
	d := dashboard.Config{
		App: cfg.App, Version: thisBuild().Version, Self: inst.Status, Group: statuses, Topology: cfg.Topology.Graph(), Logger: log,
	}
	if cfg.Admin.AllowActions {
		d.Orders = bus
	}
	return dashboard.New(d)
}

// tracesLimit bounds how long the last spans may take to be sent.
const tracesLimit = time.Second

// startTraces sends spans of the instance, if that is configured, until it is stopped.
func startTraces(ctx context.Context, e *env, cfg *config.Config, inst *instance.Instance, log *slog.Logger) (stop func(), err error) {
	t := telemetry.TraceConfig{
		App: cfg.App, Instance: inst.ID(), Version: thisBuild().Version, Endpoint: cfg.Telemetry.Traces.Endpoint,
		CommitEvery: cfg.Telemetry.Traces.CommitEvery, Env: e.lookup, Logger: log,
	}
	if !t.Wanted() {
		return func() {}, nil
	}
	traces, err := telemetry.StartTraces(ctx, t)
	if err != nil {
		return nil, err
	}
	inst.Observe(traces.Events())
	return func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesLimit)
		defer cancel()
		if err := traces.Shutdown(bounded); err != nil {
			log.Debug("the last traces were not sent", "error", err)
		}
	}, nil
}

func newLogger(w io.Writer, cfg config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level)) // checked when the file was loaded
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
