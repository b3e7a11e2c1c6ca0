package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	run := measure
	if len(os.Args) > 1 && os.Args[1] == floorCommand {
		run = runFloor
	}
	if err := run(ctx, log, os.Args[1:]); err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// workloads are what can be measured, in this order.
var workloads = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"count", (*bench).count},
	{"cached", (*bench).cached},
	{"windowed", (*bench).windowed},
	{"filter", (*bench).filter},
	{"tasks", (*bench).manyTasks},
	{"restore", (*bench).restore},
	{"startup", (*bench).startup},
	{"join", (*bench).join},
	{"scalein", (*bench).scaleIn},
	{"learn", (*bench).learn},
	{"floor", (*bench).floor},
	{"assign", (*bench).growth},
}

// measure runs the chosen workloads. What was measured is written after each run. A workload that fails does not end
// the others.
func measure(ctx context.Context, log *slog.Logger, args []string) error {
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	began := time.Now()
	b, err := newBench(ctx, log, s)
	if err != nil {
		return err
	}
	defer b.close()
	var failed []error
	for _, w := range workloads {
		if !slices.Contains(s.workloads, w.name) {
			continue
		}
		err := w.run(b, ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			log.Error("workload failed", "workload", w.name, "error", err)
			failed = append(failed, fmt.Errorf("workload %s: %w", w.name, err))
		}
	}
	log.Info("done", "took", time.Since(began).Round(time.Second), "json", s.out+".json", "table", s.out+".md")
	if n := b.report.failed(); n > 0 {
		failed = append(failed, fmt.Errorf("%d runs failed: see %s.md", n, s.out))
	}
	return errors.Join(failed...)
}
