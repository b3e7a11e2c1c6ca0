package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/instance"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/topics"
)

// Result is how a check ended.
type Result string

// The results.
const (
	OK      Result = "ok"
	Warning Result = "warning" // it works, and something is not as it should be
	Failed  Result = "failed"  // an instance would not start, or does not work
	Skipped Result = "skipped" // could not be looked at
)

// Finding is one line of what was found. Its JSON form is part of that of `doctor -o json`.
type Finding struct {
	Check   string `json:"check"`
	Result  Result `json:"result"`
	Message string `json:"message"` // with what to do, unless the result is OK
}

// Doctor examines one application.
type Doctor struct {
	cfg       *config.Config
	connector *kafka.Connector
	patience  time.Duration
	report    func(Finding)
	// Asking is called before each question to the brokers with what it is about; nil: nobody is told.
	Asking func(about string)
	failed bool

	// What is known after the checks of the brokers and topics.
	cl               *kgo.Client
	adm              *kadm.Client
	transactionLevel int16                  // of the brokers, the lowest; -1: not known
	needs            *instance.Needs        // nil: not known
	found            map[string]topics.Info // internal topics
}

// New returns a Doctor that has touched nothing yet. Patience bounds each of its questions to the brokers.
func New(cfg *config.Config, patience time.Duration) *Doctor {
	return &Doctor{cfg: cfg, connector: kafka.NewConnector(cfg.Kafka.Connection, slog.New(slog.DiscardHandler)), patience: patience}
}

// Examine makes all checks, calls report with each finding as it is made, and tells whether none failed. After the end of ctx
// the rest is skipped, and the error says so.
func (d *Doctor) Examine(ctx context.Context, report func(Finding)) (healthy bool, err error) {
	d.report = report
	d.directory(ctx)
	d.files()
	d.schemas(ctx)
	cl, err := d.client(d.cfg.Kafka.Brokers)
	if err != nil {
		return false, fmt.Errorf("kafka.brokers: %w", err)
	}
	defer cl.Close()
	d.cl, d.adm = cl, kadm.NewClient(cl)
	d.asks("connection")
	if !d.addresses(ctx) {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		d.skip("without a broker", "brokers", "topics", "rights", "group", "clocks")
		return false, nil
	}
	for _, c := range []struct {
		about string
		check func(context.Context)
	}{
		{"brokers", d.members}, {"transactions", d.transactions}, {"topics", d.topics}, {"rights", d.rights}, {"group", d.group}, {"tasks and clocks", d.statuses},
	} {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		bounded, cancel := context.WithTimeout(ctx, d.patience)
		d.asks(c.about)
		c.check(bounded)
		cancel()
	}
	return !d.failed, context.Cause(ctx)
}

func (d *Doctor) asks(about string) {
	if d.Asking != nil {
		d.Asking(about)
	}
}

func (d *Doctor) client(brokers []string) (*kgo.Client, error) {
	opts := append(d.connector.Options(nil), kgo.ClientID("streamworker-doctor"))
	opts = append(opts, control.Opts()...)
	return kgo.NewClient(append(opts, kgo.SeedBrokers(brokers...))...)
}

func (d *Doctor) tell(check string, r Result, format string, args ...any) {
	d.failed = d.failed || r == Failed
	d.report(Finding{Check: check, Result: r, Message: fmt.Sprintf(format, args...)})
}

// fail reports the errors that err joins, one line each.
func (d *Doctor) fail(check string, err error) {
	for _, e := range parts(err) {
		d.tell(check, Failed, "%v", kafka.Explain(e))
	}
}

// parts takes apart what errors.Join has put together.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || fmt.Sprintf("%T", err) != "*errors.joinError" {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, parts(e)...)
	}
	return out
}

func (d *Doctor) skip(why string, checks ...string) {
	for _, c := range checks {
		d.tell(c, Skipped, "cannot be checked %s", why)
	}
}
