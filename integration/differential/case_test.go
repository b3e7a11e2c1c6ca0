//go:build integration

package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// testCase is a file in testdata.
type testCase struct {
	name string
	top  *topology.Topology

	Streams      any              `yaml:"streams"`       // ours, as are
	Tables       any              `yaml:"tables"`        // these
	KafkaStreams []any            `yaml:"kafka_streams"` // statements, see Description.java
	Input        input            `yaml:"input"`
	Compare      map[string]order `yaml:"compare"` // by topic; default: sequence
}

// order says how far the order of a topic's records is defined.
type order string

const (
	sequence order = "sequence" // all of it
	perKey   order = "per_key"  // that of the records with the same key
	// unmatched: of a left or outer join: Kafka Streams writes records without a counterpart later than they are due, and some too
	// early although a counterpart still comes. These are compared apart, as sets; the rest in order. Values have to be unique.
	unmatched order = "unmatched"
	// foreignKey is perKey without the timestamps of nulls: Kafka Streams gives that of a deletion another one if there is a row
	// with its foreign key.
	foreignKey order = "foreign_key"
)

// input says what the records are made of.
type input struct {
	Records int              `yaml:"records"` // default 200
	Step    int64            `yaml:"step"`    // most ms from one record to the next; default 20
	Late    int64            `yaml:"late"`    // most ms by which a record may be behind; default 100
	Grid    int64            `yaml:"grid"`    // timestamps are multiples of it; default 1
	Flush   bool             `yaml:"flush"`   // records far behind all others, with the key flush, bring out what waits
	Topics  map[string]topic `yaml:"topics"`
}

type topic struct {
	Keys       []any   `yaml:"keys"`
	Values     []any   `yaml:"values"`
	Unique     bool    `yaml:"unique"` // values are texts, made unique by a number behind them
	Share      int     `yaml:"share"`  // of the records, relative to the other topics; default 1
	NullKeys   float64 `yaml:"null_keys"`
	NullValues float64 `yaml:"null_values"`
}

func loadCases(t *testing.T) []*testCase {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no cases", err)
	}
	var all []*testCase
	for _, path := range paths {
		all = append(all, loadCase(t, path))
	}
	return all
}

func loadCase(t *testing.T, path string) *testCase {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &testCase{
		name:  strings.TrimSuffix(filepath.Base(path), ".yaml"),
		Input: input{Records: 200, Step: 20, Late: 100, Grid: 1},
	}
	if err := yaml.UnmarshalWithOptions(src, c, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	c.top = parse(t, path, src)
	for name, one := range c.Input.Topics {
		if !slices.Contains(c.top.Inputs(), name) || len(one.Keys) == 0 || len(one.Values) == 0 {
			t.Fatalf("%s: topic %s needs keys and values, and a stream that reads it", path, name)
		}
	}
	return c
}

// parse reads our half of a file.
func parse(t *testing.T, path string, src []byte) *topology.Topology {
	t.Helper()
	f := yamlnode.Parse(path, src, nil)
	root := f.Root().Map()
	top := topology.Definition{App: "differential", Streams: root.Get("streams"), Tables: root.Get("tables")}.Parse()
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	return top
}

// record is an input, as both sides read it.
type record struct {
	Topic string `json:"topic" yaml:"topic"`
	Key   any    `json:"key" yaml:"key"`
	Value any    `json:"value" yaml:"value"`
	TS    int64  `json:"ts" yaml:"ts"`
}

// flushKey is that of records whose results are not compared.
const flushKey = "flush"

// generate makes the input of one seed. Time goes on by 0 to Step ms, half of the records come with it, and the others are
// up to Late ms behind; one in ten has the timestamp of the one before.
func (c *testCase) generate(seed uint64) []record {
	r := rand.New(rand.NewPCG(seed, 0))
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.Input.Topics)) {
		names = append(names, slices.Repeat([]string{name}, max(1, c.Input.Topics[name].Share))...)
	}
	now := c.Input.Late
	var out []record
	for i := range c.Input.Records {
		now += r.Int64N(c.Input.Step + 1)
		name := names[r.IntN(len(names))]
		from := c.Input.Topics[name]
		rec := record{Topic: name, Key: from.Keys[r.IntN(len(from.Keys))], Value: from.Values[r.IntN(len(from.Values))], TS: now}
		if r.Float64() < from.NullKeys {
			rec.Key = nil
		}
		if r.Float64() < from.NullValues {
			rec.Value = nil
		}
		switch n := r.IntN(10); {
		case n == 0 && i > 0:
			rec.TS = out[i-1].TS
		case n < 5 && c.Input.Late > 0:
			rec.TS -= r.Int64N(c.Input.Late + 1)
		}
		rec.TS -= rec.TS % c.Input.Grid
		if from.Unique && rec.Value != nil {
			rec.Value = fmt.Sprintf("%v%d", rec.Value, i)
		}
		out = append(out, rec)
	}
	for i := range 5 {
		for _, name := range slices.Sorted(maps.Keys(c.Input.Topics)) {
			if c.Input.Flush {
				now += 10_000
				out = append(out, record{Topic: name, Key: flushKey, Value: fmt.Sprint("flush", i), TS: now})
			}
		}
	}
	return out
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
