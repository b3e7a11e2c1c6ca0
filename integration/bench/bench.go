package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/integration/harness"
)

// bench is what all workloads share.
type bench struct {
	*settings
	log    *slog.Logger
	kafka  *harness.Kafka
	client *kgo.Client
	admin  *kadm.Client
	report *report
	inputs map[string]*input // loaded so far, by topic
	warm   bool              // the run that is not counted has been

	restores []*restoring // made by the first workload that needs them
	remove   func() error // of dir, if nobody wants it
}

// brokerConfig lets members of Kafka Streams' newer protocol beat each second, as both sides do in this benchmark
// where an instance leaves or joins: the shortest that a broker allows by default is five seconds.
const brokerConfig = `group.streams.min.heartbeat.interval.ms=1000
group.streams.heartbeat.interval.ms=1000`

// newBench builds both sides and starts Kafka.
func newBench(ctx context.Context, log *slog.Logger, s *settings) (_ *bench, err error) {
	b := &bench{settings: s, log: log, inputs: map[string]*input{}, remove: func() error { return nil }}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "streamworker-bench-"); err != nil {
			return nil, err
		}
		b.remove = func() error { return os.RemoveAll(b.dir) }
	} else if b.dir, err = filepath.Abs(b.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(b.dir, "logs"), 0o755); err != nil {
		return nil, err
	}
	log.Info("building")
	if err := harness.Build(); err != nil {
		return nil, err
	}
	if b.only != workerSide {
		if err := buildPeer(ctx); err != nil {
			return nil, err
		}
	}
	log.Info("starting Kafka")
	if b.kafka, err = harness.NewKafka(strings.Split(brokerConfig, "\n")...); err != nil {
		return nil, err
	}
	if b.client, err = kgo.NewClient(kgo.SeedBrokers(b.kafka.Address)); err != nil {
		return nil, err
	}
	b.admin = kadm.NewClient(b.client)
	b.report = &report{Began: time.Now(), Machine: thisMachine(ctx, b.admin), Settings: b.described()}
	return b, ctx.Err()
}

func (b *bench) close() {
	if b.client != nil {
		b.client.Close()
	}
	if b.kafka != nil {
		b.kafka.Remove()
	}
	if err := b.remove(); err != nil {
		b.log.Warn("the directory is left", "directory", b.dir, "error", err)
	}
}

// described are the settings, as the report shows them.
func (b *bench) described() map[string]string {
	j := job{kind: countJob, app: "APP", input: "INPUT", output: "OUTPUT", guarantee: atLeastOnce, commit: shortCommit}
	kafka := *b.kafka
	kafka.Address = "BROKER"
	like := &bench{settings: b.settings, kafka: &kafka}
	inline := func(text string) string { return "`" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "`, `") + "`" }
	return map[string]string{
		"records": fmt.Sprintf("%d in each input, values of %d bytes, %d partitions; %d and %d distinct keys, drawn uniformly",
			b.records, valueBytes, b.partitions, b.small, b.large),
		"pairs":                    fmt.Sprint(b.pairs),
		"JVM of Kafka Streams":     inline(strings.Join(b.jvm, " ")),
		"Kafka Streams, count":     inline(peer{like}.properties(j, "INSTANCE", "DIRECTORY")),
		"streamworker, count":      inline(worker{like}.config(j)),
		"streamworker environment": strings.Join(append([]string{"as inherited"}, b.workerEnv...), " "),
		"broker":                   "scripts/kafka.sh, one node, and " + inline(brokerConfig),
	}
}

// contender is one of those that take turns in a case.
type contender struct {
	side, variant string
	run           func(ctx context.Context) (map[string]float64, error)
}

// runLimit bounds one run.
const runLimit = 30 * time.Minute

// alternate lets the contenders of a case take turns, in the other order each time, and keeps their figures. A run that
// fails does not end the others.
func (b *bench) alternate(ctx context.Context, workload, name string, contenders ...contender) error {
	if b.only != "" {
		contenders = slices.DeleteFunc(contenders, func(c contender) bool { return c.side != b.only })
	}
	if b.warmUp && !b.warm {
		b.warm = true
		for _, c := range contenders {
			b.log.Info("warming up", "side", join(c.side, c.variant))
			if _, err := b.once(ctx, c); err != nil {
				return fmt.Errorf("warming up, %s: %w", join(c.side, c.variant), err)
			}
		}
	}
	for pair := range b.pairs {
		for i := range contenders {
			c := contenders[i]
			if pair%2 == 1 {
				c = contenders[len(contenders)-1-i]
			}
			r := run{Workload: workload, Case: name, Side: c.side, Variant: c.variant, Pair: pair + 1, Load: loadAverage()}
			figures, err := b.once(ctx, c)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.Figures = figures
			log := b.log.With("workload", workload, "case", name, "side", join(c.side, c.variant), "pair", r.Pair)
			if err != nil {
				r.Failed, r.Figures = err.Error(), nil
				log.Error("run failed", "error", err)
			} else {
				for _, f := range compared[workload] {
					if v, ok := figures[f.key]; ok {
						log = log.With(f.key, digits(v))
					}
				}
				log.Info("run")
			}
			b.report.Runs = append(b.report.Runs, r)
			if err := b.report.write(b.out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) once(ctx context.Context, c contender) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	return c.run(ctx)
}

func (b *bench) startProcess(name string, env []string, argv ...string) (*process, error) {
	return startProcess(name, filepath.Join(b.dir, "logs", name+".log"), env, argv...)
}

// stateDir is where an instance keeps its state.
func (b *bench) stateDir(j job, id string) (string, error) {
	dir := filepath.Join(b.dir, "state", j.app, id)
	return dir, os.MkdirAll(dir, 0o755)
}

func (b *bench) removeState(j job) error { return os.RemoveAll(filepath.Join(b.dir, "state", j.app)) }

// pause waits, or returns why it cannot.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

var errStopped = errors.New("it ended too early")
