package streams

import (
	"github.com/streamworker/streamworker/pkg/topology"
)

// StepOption says something about a step.
type StepOption func(*topology.Func)

// Named gives the step's function a name, for descriptions and messages. It is a part of what identifies the topology.
func Named(name string) StepOption { return func(f *topology.Func) { f.Name = name } }

// attach makes a function a part of the topology, and returns what stands for it.
func (n *node) attach(f *topology.Func, options []StepOption) string {
	for _, option := range options {
		option(f)
	}
	return n.b.attach(f)
}

func truth[K, V any](in reader[K, V], f func(Record[K, V]) bool) *topology.Func {
	return &topology.Func{Truth: func(c *topology.Call) (bool, error) {
		r, err := in.record(c)
		if err != nil {
			return false, err
		}
		return f(r), nil
	}}
}

func value[K, V, T any](in reader[K, V], to Serde[T], f func(Record[K, V]) (T, error)) *topology.Func {
	return &topology.Func{Format: to.format, Value: func(c *topology.Call, out *topology.Datum) error {
		r, err := in.record(c)
		if err != nil {
			return err
		}
		v, err := f(r)
		if err != nil {
			return err
		}
		return to.write(v, out)
	}}
}

func list[K, V, T any](in reader[K, V], to Serde[T], f func(Record[K, V]) ([]T, error)) *topology.Func {
	return &topology.Func{Format: to.format, List: func(c *topology.Call, yield func(topology.Datum) error) error {
		r, err := in.record(c)
		if err != nil {
			return err
		}
		all, err := f(r)
		if err != nil {
			return err
		}
		for _, v := range all {
			var d topology.Datum
			d.SetNull()
			if err := to.write(v, &d); err != nil {
				return err
			}
			if err := yield(d); err != nil {
				return err
			}
		}
		return nil
	}}
}

// folded is a function of the value so far and of a record.
func folded[K, V, A any](in reader[K, V], of Serde[A], f func(A, Record[K, V]) (A, error)) *topology.Func {
	return &topology.Func{Format: of.format, Value: func(c *topology.Call, out *topology.Datum) error {
		r, err := in.record(c)
		if err != nil {
			return err
		}
		acc, err := of.decode(c.Acc(), "value so far")
		if err != nil {
			return err
		}
		if acc, err = f(acc, r); err != nil {
			return err
		}
		return of.write(acc, out)
	}}
}

// joinedValue is a function of a record and of the value of the other side.
func joinedValue[K, V, W, R any](in reader[K, V], with Serde[W], to Serde[R], f func(Record[K, V], W) (R, error)) *topology.Func {
	return &topology.Func{Format: to.format, Value: func(c *topology.Call, out *topology.Datum) error {
		r, err := in.record(c)
		if err != nil {
			return err
		}
		other, err := with.decode(c.Other(), "other")
		if err != nil {
			return err
		}
		v, err := f(r, other)
		if err != nil {
			return err
		}
		return to.write(v, out)
	}}
}
