package main

import (
	"strings"
	"testing"

	"github.com/streamworker/streamworker/integration/harness"
	"github.com/streamworker/streamworker/pkg/config"
)

func TestWorkerConfig(t *testing.T) {
	w := worker{&bench{kafka: &harness.Kafka{Address: "localhost:9092"}}}
	cached := newJob(countJob, "in", exactlyOnce, shortCommit)
	cached.cache = cacheBytes
	for _, c := range []struct {
		j    job
		late bool
	}{{newJob(countJob, "in", atLeastOnce, shortCommit), false}, {cached, true}, {newJob(windowedJob, "in", atLeastOnce, shortCommit), false}, {newJob(filterJob, "in", atLeastOnce, shortCommit), false}} {
		text := w.config(c.j)
		cfg, err := config.Parse("bench.yaml", []byte(text), nil, config.Overrides{})
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		top := cfg.Topology
		if late := strings.Contains(top.String(), "emitted at commits"); late != c.late {
			t.Errorf("emits at commits: %v, want %v\n%s", late, c.late, top)
		}
		if in, out := top.Inputs(), top.Outputs(); len(in) != 1 || in[0] != c.j.input || len(out) != 1 || out[0] != c.j.output {
			t.Errorf("from %v to %v, want from %s to %s", in, out, c.j.input, c.j.output)
		}
	}
}
