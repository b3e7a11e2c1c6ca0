package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// settings are what the flags say.
type settings struct {
	workloads []string
	only      string // the side that is measured; "": both
	pairs     int
	out       string // without its extension
	dir       string

	records    int
	small      int // distinct keys
	large      int
	partitions int
	tasks      int // of the workload with many
	warmUp     bool
	commits    []time.Duration // tried where output may wait for the commit

	rate    int // records a second while an instance leaves or joins
	settle  time.Duration
	observe time.Duration
	idle    time.Duration

	jvm       []string // of Kafka Streams
	peerConf  []string // more properties of Kafka Streams, name=value
	workerEnv []string // more environment of streamworker
	profiles  string   // directory for profiles of streamworker; "": none are taken
}

func parseSettings(args []string) (*settings, error) {
	all := make([]string, len(workloads))
	for i, w := range workloads {
		all[i] = w.name
	}
	s := new(settings)
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	chosen := f.String("workloads", strings.Join(all, ","), "what to measure, with commas between")
	f.StringVar(&s.only, "only", "", "measure one `side`: "+peerSide+" or "+workerSide)
	f.StringVar(&s.profiles, "profiles", "", "`directory` for profiles of streamworker in each run that processes an input: they cost it some of its speed")
	f.IntVar(&s.pairs, "pairs", 3, "runs of each side")
	f.StringVar(&s.out, "out", "bench-results", "`file` for the results, .json and .md are added")
	f.StringVar(&s.dir, "dir", "", "`directory` for state and logs, kept (default: a temporary one, removed)")
	f.IntVar(&s.records, "records", 5_000_000, "records in each input topic and in the changelog to restore")
	f.IntVar(&s.small, "small", 100_000, "distinct keys of the small key space")
	f.IntVar(&s.large, "large", 1_000_000, "distinct keys of the large key space")
	f.IntVar(&s.partitions, "partitions", 8, "partitions of each topic")
	f.IntVar(&s.tasks, "tasks", 300, "partitions of the input of the workload with many tasks")
	f.BoolVar(&s.warmUp, "warm-up", true, "begin with a run of each side that is not counted: the broker is a JVM too")
	commits := f.String("commits", "1s,10s,30s", "commit intervals tried by the workload cached; the best of each side counts")
	f.IntVar(&s.rate, "rate", 5000, "records a second while an instance leaves or joins")
	f.DurationVar(&s.settle, "settle", 30*time.Second, "time under that load before an instance leaves or joins")
	f.DurationVar(&s.observe, "observe", 30*time.Second, "time under that load after an instance was told to leave, or was started")
	f.DurationVar(&s.idle, "idle", 20*time.Second, "time over which an idle instance is measured")
	jvm := f.String("peer-jvm", "-Xmx1g", "`options` of Kafka Streams' JVM")
	conf := f.String("peer-conf", "", "more `properties` of Kafka Streams, name=value with commas between")
	env := f.String("worker-env", "", "more environment `variables` of streamworker, NAME=value with spaces between")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	s.workloads = strings.Split(*chosen, ",")
	s.jvm, s.workerEnv = strings.Fields(*jvm), strings.Fields(*env)
	if *conf != "" {
		s.peerConf = strings.Split(*conf, ",")
	}
	for text := range strings.SplitSeq(*commits, ",") {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("-commits %s: %w", *commits, err)
		}
		s.commits = append(s.commits, d)
	}
	return s, s.check(all, f.Args())
}

func (s *settings) check(known, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unknown argument %q", rest[0])
	}
	for _, w := range s.workloads {
		if !slices.Contains(known, w) {
			return fmt.Errorf("-workloads: there is no %q, there are %s", w, strings.Join(known, ", "))
		}
	}
	if s.only != "" && s.only != peerSide && s.only != workerSide {
		return fmt.Errorf("-only: there is no side %q, there are %s and %s", s.only, peerSide, workerSide)
	}
	for _, c := range s.peerConf {
		if !strings.Contains(c, "=") {
			return fmt.Errorf("-peer-conf: %q is not name=value", c)
		}
	}
	if s.pairs < 1 || s.records < 1 || s.small < 1 || s.large < 1 || s.partitions < 1 || s.tasks < 1 || s.rate < 1 {
		return errors.New("pairs, records, keys, partitions, tasks and rate must be positive")
	}
	return nil
}
