package cases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/topologytest"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// File is a topology with its cases.
type File struct {
	Path     string // of the topology
	TestPath string // of the cases
	Topology *topology.Topology
	Cases    []*Case
}

// Case is one case, checked.
type Case struct {
	Name    string
	place   place
	steps   []step
	outputs []outputs
	tables  []table
	stores  []table
}

// place is a line and a column of the file with the cases, both from 1.
type place struct{ line, column int }

// step is an input, or a move of the wall clock.
type step struct {
	place   place
	record  topologytest.Record
	advance time.Duration // 0: it is an input
	failure string        // part of the message of the error that is expected; "": none is
}

// outputs are what is expected of a topic.
type outputs struct {
	place   place
	topic   string
	records []record
}

// table is what is expected of a topic's last values, or of a store.
type table struct {
	place place
	name  string
	rows  []row
}

type row struct {
	place place
	key   string
	value any
}

const suffix = "_test.yaml"

// Paths are those of a topology and of its cases; either may be given.
func Paths(path string) (topology, tests string) {
	if stem, ok := strings.CutSuffix(path, suffix); ok {
		return stem + ".yaml", path
	}
	return path, strings.TrimSuffix(path, filepath.Ext(path)) + suffix
}

// Load reads a topology and its cases; path is that of either file. env resolves ${NAME} in the topology. A
// program, if there is one, says what to compute in place of the file. The error lists
// all mistakes (yamlnode.Problems), or says why a file cannot be read.
func Load(path string, env func(string) (string, bool), program *topology.Program) (*File, error) {
	f := &File{}
	f.Path, f.TestPath = Paths(path)
	cfg, err := config.Load(f.Path, env, config.Overrides{Offline: true, Program: program})
	if err != nil {
		return nil, err
	}
	f.Topology = cfg.Topology
	src, err := os.ReadFile(f.TestPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no cases: write them into %s", f.Path, f.TestPath)
	}
	if err != nil {
		return nil, err
	}
	return f, f.parse(src)
}

func (f *File) parse(src []byte) error {
	file := yamlnode.Parse(f.TestPath, src, nil)
	if err := file.Err(); err != nil {
		return err
	}
	root := file.Root().Map()
	list := root.Require("cases", "cases: [{name: ..., inputs: [...], outputs: {TOPIC: [...]}}]")
	root.Done()
	r := &reader{top: f.Topology}
	for i, node := range list.List() {
		f.Cases = append(f.Cases, r.one(node.Named(fmt.Sprintf("case %d", i+1))))
	}
	if list.Exists() && len(f.Cases) == 0 {
		list.Errorf("", "there are no cases")
	}
	return file.Err()
}

// reader reads cases of a topology.
type reader struct {
	top *topology.Topology
	now int64 // timestamp of the input before
}

func (r *reader) one(node yamlnode.Node) *Case {
	m := node.Map()
	c := &Case{Name: m.Require("name", "say what the case shows").String(""), place: placeOf(node)}
	r.now = 0
	for _, in := range m.Require("inputs", "list what is read: inputs: [{topic: ..., value: ..., ts: 1s}]").List() {
		c.steps = append(c.steps, r.step(in))
	}
	out, tables, stores := m.Get("outputs"), m.Get("tables"), m.Get("stores")
	m.Done()
	for topic, node := range fields(out) {
		if r.known(node, topic, r.outputTopics(), "no stream writes topic %q") {
			c.outputs = append(c.outputs, r.outputs(topic, node))
		}
	}
	for topic, node := range fields(tables) {
		if r.known(node, topic, r.outputTopics(), "no stream writes topic %q") {
			_, format := topologytest.OutputFormats(r.top, topic)
			c.tables = append(c.tables, r.table(topic, format.Format, node))
		}
	}
	for name, node := range fields(stores) {
		if specs := r.stores(); r.known(node, name, specs.names(), "no store is called %q") {
			c.stores = append(c.stores, r.table(name, specs[name].Value, node))
		}
	}
	if !c.expects() {
		node.Errorf("add outputs, tables or stores", "the case expects nothing")
	}
	return c
}

// expects tells whether the case can fail.
func (c *Case) expects() bool {
	fails := slices.ContainsFunc(c.steps, func(s step) bool { return s.failure != "" })
	return fails || len(c.outputs)+len(c.tables)+len(c.stores) > 0
}

func (r *reader) known(node yamlnode.Node, name string, all []string, message string) bool {
	if slices.Contains(all, name) {
		return true
	}
	hint := "there are: " + strings.Join(all, ", ")
	if near := yamlnode.Nearest(name, all); near != "" {
		hint = "did you mean " + near + "? (" + hint + ")"
	}
	node.Errorf(hint, message, name)
	return false
}

func (r *reader) outputTopics() []string {
	topics := r.top.Outputs()
	for _, s := range r.top.Subtopologies {
		for _, sink := range s.Sinks {
			topics = append(topics, sink.Topic)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

type storeSpecs map[string]topology.StoreSpec

func (r *reader) stores() storeSpecs {
	out := make(storeSpecs)
	for _, s := range r.top.Subtopologies {
		for _, spec := range s.Stores {
			out[spec.Name] = spec
		}
	}
	return out
}
