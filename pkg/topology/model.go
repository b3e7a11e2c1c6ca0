package topology

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// Topology is what an application computes, cut into subtopologies. It is made by Parse and never changes.
type Topology struct {
	App           string
	Subtopologies []*Subtopology // Subtopologies[i].ID is i
	Globals       []*Global      // tables that every instance has whole
}

// Subtopology is a part whose steps follow each other without a topic between them. Each of its partitions
// is a task.
type Subtopology struct {
	ID       int32
	Sources  []Source
	Stores   []StoreSpec
	Sinks    []Sink    // each topic once
	Stateful bool      // has stores
	Globals  []*Global // that its steps look into
	segments []*segment
}

// Start says where to begin in a source without a committed offset, and after one that is no longer retained.
type Start string

// The places to start at. Fail is one only for offsets that are no longer retained.
const (
	Earliest Start = "earliest"
	Latest   Start = "latest"
	Fail     Start = "fail"
)

// Policy says what to do with a record that cannot be processed.
type Policy string

// The policies.
const (
	Stop       Policy = "fail"        // Process returns a *RecordError
	Skip       Policy = "skip"        // count it and go on
	DeadLetter Policy = "dead_letter" // write it to the dead letter topic and go on
)

// Source is a topic that a subtopology consumes.
type Source struct {
	Topic           string
	Internal        bool  // a repartition topic
	Start           Start // Earliest or Latest
	OnOutOfRange    Start
	OnError         Policy
	DeadLetterTopic string // "" unless OnError is DeadLetter
}

// Sink is a topic that a subtopology writes.
type Sink struct {
	Topic      string
	Internal   bool // a repartition topic
	Key, Value Serde
	Window     *window.Spec // keys are followed by a window, see window.Spec.ParseKey; nil: they are not
}

func (s Sink) hashed() string {
	text := fmt.Sprintf("{Topic:%s Internal:%v Key:%v Value:%v}", s.Topic, s.Internal, s.Key, s.Value)
	return text + hashedWindow(s.Window)
}

// StoreSpec is a store of a subtopology. In the store, and so in its changelog, a value is 8 bytes of timestamp
// (ms since the epoch, big-endian) and then the value in its format.
type StoreSpec struct {
	Name       string
	Changelog  string
	Key, Value Format
	Window     *window.Spec // keys of rows have a window, see window.Spec.ParseRow and window.Result; nil: they have none
	Layout     Layout       // of rows without a window
	Of         string       // what the rows are, beyond their format, e.g. "count"; part of the definition
	scanned    bool         // rows are read in order of their keys
}

// Layout says what the rows of a store are.
type Layout uint8

// The layouts.
const (
	Rows   Layout = iota // a key and its value
	Buffer               // the records of one side of a join, see window.ParseBuffered
	Index                // subscriptions by foreign key, see foreign.go
	Timed                // times of records or rows, see ttl.go
)

// Ordered reports whether the store has to be an OrderedStore.
func (s StoreSpec) Ordered() bool { return s.Window != nil || s.Layout != Rows || s.scanned }

// RowKey takes the key of a row apart: the key, and the window that it is of, if rows have windows; of a record in a buffer
// its timestamp is both bounds. It is false for rows that hold no value, but what the store's owner knows of time.
func (s StoreSpec) RowKey(row []byte) (key []byte, w window.Bounds, ok bool) {
	switch {
	case s.Window == nil && s.Layout == Rows:
		return row, w, true
	case s.Layout == Index, s.Layout == Timed, !window.Result(row):
		return nil, w, false
	case s.Layout == Buffer:
		key, at, ok := window.ParseBuffered(row)
		return key, window.Bounds{Start: at.Time, End: at.Time}, ok
	default:
		return s.Window.ParseRow(row)
	}
}

func (s StoreSpec) hashed() string {
	text := fmt.Sprintf("{Name:%s Changelog:%s Key:%v Value:%v}", s.Name, s.Changelog, s.Key, s.Value) + hashedWindow(s.Window)
	if s.Layout != Rows {
		text += fmt.Sprintf(" layout %d", s.Layout)
	}
	return text
}

func hashedWindow(w *window.Spec) string {
	if w == nil {
		return ""
	}
	return fmt.Sprintf("%+v", *w)
}

// hashed writes a list as %+v writes one of plain structs: hashes outlive versions of the program.
func hashed[T interface{ hashed() string }](list []T) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = one.hashed()
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// segment is a chain of steps, from one topic or from where other segments end.
type segment struct {
	stream     string // or table
	table      bool   // stream is the name of a table
	source     Source // the topic; of a segment that follows others, where their records come from: its policy holds
	key, value Serde  // at its beginning
	follows    []*flow
	joins      []*flow // what its steps take up in addition
	end        *flow   // behind the last step
	old        bool    // what follows wants to know what a table's rows were before
	steps      []step
	stores     []StoreSpec
	globals    []*Global
	sinks      []Sink
	uses       usage // what the expressions look at while key and value are those of the source
	at         position
}

// reads reports whether the segment begins at its source's topic.
func (s *segment) reads() bool { return len(s.follows) == 0 }

// ChangelogTopic names the changelog of a store.
func ChangelogTopic(app, store string) string { return app + "-" + store + "-changelog" }

// RepartitionTopic names the topic between a change of key and the aggregate that needs it.
func RepartitionTopic(app, name string) string { return app + "-" + name + "-repartition" }

// Topics lists the topics that the tasks of s consume.
func (s *Subtopology) Topics() []string {
	out := make([]string, len(s.Sources))
	for i, source := range s.Sources {
		out[i] = source.Topic
	}
	return out
}

// Inputs lists the topics that the application reads and does not create.
func (t *Topology) Inputs() []string {
	inputs := t.topics(func(s *Subtopology, add func(string)) {
		for _, source := range s.Sources {
			if !source.Internal {
				add(source.Topic)
			}
		}
	})
	for _, g := range t.Globals {
		inputs = append(inputs, g.Topic)
	}
	slices.Sort(inputs)
	return slices.Compact(inputs)
}

// Formats are the formats in which the first stream that reads the topic takes its keys and values.
func (t *Topology) Formats(input string) (key, value Serde) {
	for _, s := range t.Subtopologies {
		for _, seg := range s.segments {
			if seg.reads() && seg.source.Topic == input {
				return seg.key, seg.value
			}
		}
	}
	for _, g := range t.Globals {
		if g.Topic == input {
			return g.Key, g.Value
		}
	}
	return Serde{}, Serde{}
}

// Outputs lists the topics that the application writes and does not create, dead letter topics too.
func (t *Topology) Outputs() []string {
	return t.topics(func(s *Subtopology, add func(string)) {
		for _, sink := range s.Sinks {
			if !sink.Internal {
				add(sink.Topic)
			}
		}
		for _, source := range s.Sources {
			if source.DeadLetterTopic != "" {
				add(source.DeadLetterTopic)
			}
		}
	})
}

func (t *Topology) topics(visit func(*Subtopology, func(string))) []string {
	var out []string
	for _, s := range t.Subtopologies {
		visit(s, func(topic string) { out = append(out, topic) })
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// PartitionCounts gives the number of tasks of each subtopology and the partitions of each internal topic, from
// those of the inputs. Inputs consumed together must have equally many. A changelog has as many as the subtopology that
// writes it; a repartition topic as the inputs that are consumed with it, if there are any, else as the subtopology that writes it.
func (t *Topology) PartitionCounts(inputs map[string]int32) (tasks []int32, internal map[string]int32, err error) {
	tasks, internal = make([]int32, len(t.Subtopologies)), make(map[string]int32)
	for i, s := range t.Subtopologies {
		if tasks[i], err = s.inputPartitions(inputs); err != nil {
			return nil, nil, err
		}
	}
	// What reads nothing but repartition topics has the partitions of those who write them, who may do so too.
	for range t.Subtopologies {
		for _, s := range t.Subtopologies {
			for _, sink := range s.Sinks {
				if sink.Internal {
					internal[sink.Topic] = max(internal[sink.Topic], tasks[s.ID])
				}
			}
		}
		for i, s := range t.Subtopologies {
			if !slices.ContainsFunc(s.Sources, func(source Source) bool { return !source.Internal }) {
				for _, source := range s.Sources {
					tasks[i] = max(tasks[i], internal[source.Topic])
				}
			}
		}
	}
	for i, s := range t.Subtopologies {
		for _, source := range s.Sources {
			if source.Internal {
				internal[source.Topic] = tasks[i]
			}
		}
		for _, store := range s.Stores {
			internal[store.Changelog] = tasks[i]
		}
	}
	return tasks, internal, nil
}

// inputPartitions is the number of partitions of the inputs that s reads; 0 if it reads none.
func (s *Subtopology) inputPartitions(inputs map[string]int32) (n int32, err error) {
	first := ""
	for _, source := range s.Sources {
		if source.Internal {
			continue
		}
		switch count := inputs[source.Topic]; {
		case count <= 0:
			return 0, fmt.Errorf("input topic %q has no partitions or does not exist: create it, or correct its name in the configuration", source.Topic)
		case first == "":
			first, n = source.Topic, count
		case count != n:
			return 0, fmt.Errorf("topics %q and %q are processed together but have %d and %d partitions: give them equally many",
				first, source.Topic, n, count)
		}
	}
	return n, nil
}

// Hash is equal for topologies that compute the same in the same tasks.
func (t *Topology) Hash() uint64 {
	h := fnv.New64a()
	for _, s := range t.Subtopologies {
		_, _ = fmt.Fprintf(h, "%+v %s %s\n", s.Sources, hashed(s.Stores), hashed(s.Sinks))
		for _, seg := range s.segments {
			_, _ = fmt.Fprintf(h, "%s %s %s %s\n", seg.stream, seg.key, seg.value, strings.Join(seg.stepTexts(), "\n"))
			if text := seg.origin(); !seg.reads() || seg.table {
				_, _ = fmt.Fprintf(h, "%s %v\n", text, seg.table)
			}
		}
	}
	for _, g := range t.Globals {
		_, _ = fmt.Fprintf(h, "global %s %s %s %s\n", g.Name, g.Topic, g.Key, g.Value)
	}
	return h.Sum64()
}

func (s *segment) kind() string {
	if s.table {
		return "table"
	}
	return "stream"
}

// origin says where the segment's records come from.
func (s *segment) origin() string {
	if s.reads() {
		return s.source.Topic
	}
	texts := make([]string, len(s.follows))
	for i, f := range s.follows {
		texts[i] = f.String()
	}
	return strings.Join(texts, ", ")
}

// stepTexts describes the steps, each on one line.
func (s *segment) stepTexts() []string {
	out := make([]string, len(s.steps))
	for i, one := range s.steps {
		out[i] = strings.ReplaceAll(one.String(), "\n", " ")
	}
	return out
}
