package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/leave"
)

// place says where leave and status look: at the instance of this host, found by its state directory, or
// at the whole application, found by its Kafka.
type place struct {
	file     string
	stateDir string
	brokers  []string
	app      string
	kafka    kafka.Connection // to the brokers, once resolved
	admin    config.Admin     // likewise, as the file has it
}

func (p *place) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&p.file, "config", "c", "", "configuration `file` of the application")
	f.StringVar(&p.stateDir, "state-dir", "", "state `directory` of the instance on this host")
	f.StringSliceVar(&p.brokers, "brokers", nil, "Kafka's `addresses`, to ask from anywhere; with --app or -c")
	f.StringVar(&p.app, "app", "", "`name` of the application, with --brokers")
}

var errNowhere = usageError{errors.New("say where: -c FILE or --state-dir DIR on the instance's host, or --brokers ADDRESS --app NAME from anywhere")}

// resolve fills in what the configuration file says. Then a place with a stateDir is on this host, unless
// remote is asked for, and one with brokers and an app can be asked from anywhere.
func (p *place) resolve(e *env, remote bool) (*place, error) {
	r := *p
	asked := len(p.brokers) > 0
	switch {
	case p.file != "":
		cfg, err := config.Load(p.file, e.lookup, config.Overrides{Brokers: p.brokers, StateDir: p.stateDir, Variables: e.variables(), Program: e.program})
		if err != nil {
			return nil, err
		}
		r.kafka, r.stateDir, r.admin = cfg.Kafka.Connection, cfg.State.Dir, cfg.Admin
		if r.app == "" {
			r.app = cfg.App
		}
	case asked || p.app != "":
		var err error
		if r.kafka, err = config.Environment(e.lookup, p.brokers); err != nil && (asked || len(r.kafka.Brokers) > 0) {
			return nil, err
		}
		asked = len(r.kafka.Brokers) > 0
	}
	r.brokers = r.kafka.Brokers
	canAsk := len(r.brokers) > 0 && r.app != ""
	switch {
	case asked && r.app == "":
		return nil, usageError{errors.New("--brokers needs the application's name too: --app NAME, or its -c FILE")}
	case p.app != "" && !canAsk:
		return nil, usageError{errors.New("--app needs Kafka's address too: --brokers ADDRESS, or STREAMWORKER_KAFKA_BROKERS")}
	case remote && !canAsk:
		return nil, usageError{errors.New("instances by id or label are found by Kafka: give --brokers ADDRESS --app NAME, or -c FILE")}
	case asked || remote:
		r.stateDir = ""
	case r.stateDir == "":
		return nil, errNowhere
	}
	return &r, nil
}

// source gives the statuses of instances.
type source interface {
	// read also returns the marks in force, nil when this source does not know them.
	read(ctx context.Context) (app string, statuses []control.Status, marks []control.Mark, err error)
	close()
}

// remote asks Kafka.
type remote struct {
	place
	client   *kgo.Client
	bus      *control.Bus
	env      *env
	patience time.Duration
}

func newRemote(e *env, p *place) (*remote, error) {
	log := slog.New(slog.DiscardHandler)
	opts := append(kafka.NewConnector(p.kafka, log).Options(nil), kgo.ClientID("streamworker-command"))
	cl, err := kgo.NewClient(append(opts, control.Opts()...)...)
	if err != nil {
		return nil, usageError{fmt.Errorf("--brokers %s: %w", strings.Join(p.brokers, ","), err)}
	}
	return &remote{place: *p, client: cl, bus: control.NewBus(cl, p.app, log), env: e, patience: e.patience}, nil
}

func (r *remote) close() { r.client.Close() }

func (r *remote) read(ctx context.Context) (string, []control.Status, []control.Mark, error) {
	var statuses []control.Status
	var marks []control.Mark
	err := r.ask(ctx, func(ctx context.Context) (err error) {
		if statuses, err = r.bus.ReadStatuses(ctx); err == nil {
			marks, err = r.bus.ReadMarks(ctx)
		}
		return err
	})
	if err == nil && marks == nil {
		marks = []control.Mark{}
	}
	return r.app, statuses, marks, err
}

// ask gives Kafka some time, and explains what it means when that was not enough.
func (r *remote) ask(ctx context.Context, question func(context.Context) error) error {
	// Kafka is looked for first: a client goes on trying where this tells at once what is wrong.
	reach := func() error { return kafka.Reach(ctx, r.client, r.patience) }
	if err := r.env.patiently("looking for Kafka", r.patience, reach); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	err := r.env.patiently("asking Kafka", r.patience, func() error {
		return kafka.Persist(bounded, r.client, r.patience, slog.New(slog.DiscardHandler), func() error { return question(bounded) })
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil:
		return fmt.Errorf("no answer from Kafka at %s within %s: is the address right, and can this host reach it? (%w)",
			strings.Join(r.brokers, ","), r.patience, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("%w: grant this client's principal the ACL operations READ and DESCRIBE on topic %s, and WRITE for leave, e.g. with kafka-acls",
			err, control.TopicName(r.app))
	case errors.Is(err, control.ErrNoTopic):
		return fmt.Errorf("%w: is the application's name, %s, right?", err, r.app)
	}
	return err
}

// local asks the instance on this host.
type local struct {
	dir    string
	client *admin.Client
	last   *control.Status // what the instance said of itself last
	note   string          // why the group is not known; empty: it is
}

func newLocal(dir string) (*local, error) {
	c, err := admin.NewClient(dir)
	if err != nil {
		return nil, err
	}
	return &local{dir: dir, client: c}, nil
}

func (l *local) close() { l.client.Close() }

// groupTries is how often an instance is asked for the group: it gives Kafka only half a second each time.
const groupTries = 4

// read takes the instance's own word for itself, and Kafka's for the others. Of an instance that has
// left meanwhile, its state directory tells how.
func (l *local) read(ctx context.Context) (string, []control.Status, []control.Mark, error) {
	reply, err := l.client.Status(ctx, true)
	for try := 1; err == nil && reply.Error != "" && try < groupTries && ctx.Err() == nil; try++ {
		reply, err = l.client.Status(ctx, true)
	}
	if ctx.Err() != nil {
		return "", nil, nil, context.Cause(ctx)
	}
	if errors.Is(err, admin.ErrNotRunning) && l.last != nil {
		s, errLeft := l.left()
		if errLeft != nil {
			return "", nil, nil, errLeft
		}
		return "", []control.Status{s}, nil, nil
	}
	if err != nil {
		return "", nil, nil, err
	}
	l.last, l.note = &reply.Instance, reply.Error
	statuses := []control.Status{reply.Instance}
	for _, s := range reply.Group {
		if s.Instance != reply.Instance.Instance {
			statuses = append(statuses, s)
		}
	}
	return reply.App, statuses, nil, nil
}

// left is the status of an instance that answered before and does not any more.
func (l *local) left() (control.Status, error) {
	s := *l.last
	s.Seen = time.Now()
	rec, err := leave.ReadRecord(l.dir)
	switch {
	case err == nil && rec.Incarnation.SameRun(s.Incarnation):
		s.Left = rec.Left
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return s, err
	}
	if s.Left == "" {
		s.Seen = time.Time{} // it was stopped, or killed, before it had left
	}
	return s, nil
}
