package dev

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/topology"
)

// Config says what a trial run does.
type Config struct {
	File   string                      // configuration of the application; "": the word count
	Lookup func(string) (string, bool) // resolves ${NAME} in File, as os.LookupEnv does
	// Program says what to compute, in place of File's streams; nil: that does.
	Program *topology.Program

	Brokers []string // of a real Kafka; none: an embedded broker

	For        time.Duration // of the stream; 0: until it is stopped
	Rate       int           // lines per second
	LeaveAfter time.Duration // after which an instance leaves; 0: none does
	JoinAfter  time.Duration // after which one joins; 0: none does

	Logger *slog.Logger // of the instances; nil: none

	wordCount []byte // another configuration of it, for tests
}

// connection is the way to the real Kafka, as the file says, or without one the environment.
func (c Config) connection() (kafka.Connection, error) {
	if c.File == "" {
		return config.Environment(c.Lookup, c.Brokers)
	}
	app, err := config.Load(c.File, c.Lookup, config.Overrides{Brokers: c.Brokers, Program: c.Program})
	if err != nil {
		return kafka.Connection{}, err
	}
	return app.Kafka.Connection, nil
}

// maxRate is what one process is asked to write, lines per second.
const maxRate = 1_000_000

// Validate lists what cannot be done.
func (c Config) Validate() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Rate < 1 || c.Rate > maxRate {
		wrong("--rate %d: want 1 to %d lines per second", c.Rate, maxRate)
	}
	if c.For < 0 {
		wrong("--for %s: want a time like 20s, or 0 for a run until Ctrl-C", c.For)
	}
	for _, at := range []struct {
		flag string
		time time.Duration
	}{{"--leave-after", c.LeaveAfter}, {"--join-after", c.JoinAfter}} {
		switch {
		case at.time < 0:
			wrong("%s %s: want a time like 5s, or 0 for never", at.flag, at.time)
		case c.For > 0 && at.time >= c.For:
			wrong("%s %s: the stream lasts %s: want a shorter time, or a longer --for", at.flag, at.time, c.For)
		}
	}
	return errors.Join(problems...)
}
