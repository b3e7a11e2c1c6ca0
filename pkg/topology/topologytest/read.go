package topologytest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/window"
)

// Written returns all that was written to a topic so far, in order; internal topics too.
func (d *Driver) Written(topic string) []Record {
	out := []Record{}
	for _, w := range d.written[topic] {
		out = append(out, d.formats.output(w))
	}
	return out
}

// Topics are the topics that were written so far, internal ones too, in order of name.
func (d *Driver) Topics() []string { return slices.Sorted(maps.Keys(d.written)) }

// Table returns the last value of each key that was written to a topic, by Record.Row. Keys whose last value is a null are not
// in it, nor are records without a key.
func (d *Driver) Table(topic string) map[string]any {
	out := make(map[string]any)
	for _, r := range d.Written(topic) {
		switch {
		case r.Key == nil:
		case r.Value == nil:
			delete(out, r.Row())
		default:
			out[r.Row()] = r.Value
		}
	}
	return out
}

// Store returns what the store with that name holds, by key as Record.Row has it.
func (d *Driver) Store(name string) (map[string]any, error) {
	for _, t := range d.tasks {
		for _, spec := range t.sub.Stores {
			if spec.Name == name {
				return rowsOf(t.db.Store(name), spec)
			}
		}
	}
	return nil, fmt.Errorf("no store is called %q", name)
}

// stamp is the length of the timestamp in front of each value in a store.
const stamp = 8

func rowsOf(s *state.Store, spec topology.StoreSpec) (map[string]any, error) {
	out := make(map[string]any)
	it := s.Range(nil, nil)
	for it.Next() {
		key, value := bytes.Clone(it.Key()), bytes.Clone(it.Value())
		var bounds *window.Bounds
		if spec.Window != nil {
			if !window.Result(key) {
				continue
			}
			plain, w, ok := spec.Window.ParseRow(key)
			if !ok {
				return nil, errors.Join(fmt.Errorf("store %s: a row with the key %q", spec.Name, key), it.Close())
			}
			key, bounds = plain, &w
		}
		if len(value) < stamp {
			return nil, errors.Join(fmt.Errorf("store %s: a value of %d bytes", spec.Name, len(value)), it.Close())
		}
		out[rowName(decode(topology.Serde{Format: spec.Key}, key), bounds)] = decode(topology.Serde{Format: spec.Value}, value[stamp:])
	}
	return out, errors.Join(it.Err(), it.Close())
}
