package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/dev"
)

func newDev(e *env) *cobra.Command {
	d := devCommand{env: e}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Watch tasks move: three instances, a broker and a stream in this one process",
		Long: `Runs three instances of a word count in this process, on an embedded broker that keeps everything in
memory, and writes lines of text for them: some at once, then --rate a second. After a while one instance
leaves, later one joins; the stream goes on. A table shows instances, tasks, how far learners have come,
throughput and gaps. At the end every count is checked against the generator's own. Nothing is left behind.

-c FILE runs a topology of your own instead, on topics made for it. Its inputs get lines of text where
they want string or bytes, with a word of the line as the key. json is an object with text, word, pair,
number (0 to 999) and line; int and float are that number. What is right for it is not known, so only this
is checked, by the offsets committed: that every record was processed. Brokers, instance id, state
directory and settings of internal topics in the file are not used.

--kafka ADDRESS uses a real Kafka instead of the embedded broker. The names of all topics and the group that
are made there begin with ` + dev.Prefix + ` and they are deleted at the end.

Learners of the word count are slowed down, so that they can be watched. A gap is the time from the last
record that the former owner of a task processed to the first one at its new owner.

Ctrl-C ends the stream and sums up; a second one, or one before the stream has begun, ends it without a check. Exit code 1: a count is wrong, or
something was not processed.`,
		Example: `  streamworker dev
  streamworker dev --for 1m --rate 2000 --leave-after 10s --join-after 40s
  streamworker dev -c words.yaml --for 0
  streamworker dev --kafka localhost:9092 -o json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.defaults(cmd)
			return d.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&d.cfg.File, "config", "c", "", "configuration `file` of a topology of your own")
	f.StringSliceVar(&d.cfg.Brokers, "kafka", nil, "`addresses` of a real Kafka; default: an embedded broker")
	f.DurationVar(&d.cfg.For, "for", 20*time.Second, "`time` that the stream lasts, and longer while a task moves; 0: until Ctrl-C")
	f.IntVar(&d.cfg.Rate, "rate", 1000, "`lines` per second")
	f.DurationVar(&d.cfg.LeaveAfter, "leave-after", 0, "`time` after which an instance leaves; 0: none does; default: a fifth of --for")
	f.DurationVar(&d.cfg.JoinAfter, "join-after", 0, "`time` after which an instance joins; 0: none does; default: half of --for")
	f.StringVar(&d.log, "log", "", "write the instances' logs to this `file`")
	d.format.flag(cmd, "text", "json")
	return cmd
}

type devCommand struct {
	env    *env
	cfg    dev.Config
	log    string
	format output
}

// endless is the length of the stream from which the times of an endless run are derived.
const endless = 20 * time.Second

// defaults derives the times that are not given.
func (d *devCommand) defaults(cmd *cobra.Command) {
	length := d.cfg.For
	if length <= 0 {
		length = endless
	}
	if !cmd.Flags().Changed("leave-after") {
		d.cfg.LeaveAfter = length / 5
	}
	if !cmd.Flags().Changed("join-after") {
		d.cfg.JoinAfter = length / 2
	}
}

func (d *devCommand) run(parent context.Context) error {
	if err := d.cfg.Validate(); err != nil {
		return usageError{err}
	}
	if d.env.program != nil && d.cfg.File == "" {
		return errNoFile
	}
	d.cfg.Lookup, d.cfg.Program = d.env.lookup, d.env.program
	closeLog, err := d.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		var stopWatching func()
		parent, stopWatching = signal.NotifyContext(parent, syscall.SIGHUP) // the terminal was closed: clean up all the same
		defer stopWatching()
	}
	ctx, stop, done := d.env.stoppable(parent)
	defer done()
	s, err := dev.Run(ctx, stop, d.cfg, d.screen())
	if errors.Is(err, dev.ErrStopped) {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	if d.format == "json" {
		err = s.WriteJSON(d.env.out)
	} else {
		err = s.WriteText(d.env.out)
	}
	return errors.Join(err, s.Err())
}

// screen is the terminal, or lines; with -o json these go where they do not disturb.
func (d *devCommand) screen() *dev.Screen {
	if d.format == "json" {
		return dev.NewScreen(d.env.errOut, false, false)
	}
	_, plain := d.env.lookup("NO_COLOR")
	return dev.NewScreen(d.env.out, d.env.terminal, !plain)
}

func (d *devCommand) openLog() (func(), error) {
	if d.log == "" {
		return func() {}, nil
	}
	f, err := os.Create(d.log)
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	d.cfg.Logger = slog.New(slog.NewTextHandler(f, nil))
	return func() { _ = f.Close() }, nil
}

// stoppable is a context that ends at the second signal; stop is closed at the first one. The caller must call done.
func (e *env) stoppable(parent context.Context) (ctx context.Context, stop <-chan struct{}, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals, first, ended := e.caught(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-signals:
			close(first)
		case <-ctx.Done():
			return
		}
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, first, func() { cancel(nil); <-ended }
}
