package topology

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/window"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// Func is a Go function in place of an expression. One of Truth, Value and List is set.
type Func struct {
	// Name is what the topology's description, its hash and messages call the function: all that is known of it.
	Name string
	// Format is that of Value's result, or of each of List's.
	Format Format

	Truth func(*Call) (bool, error)
	// Value sets the result, which is null as it is handed in.
	Value func(*Call, *Datum) error
	// List calls yield for each element, and stops at yield's first error, which it returns.
	List func(c *Call, yield func(Datum) error) error
}

// Call is what a function sees of a record. It is valid during the call only.
type Call struct {
	m   *message
	acc *datum
}

// Key is the record's key.
func (c *Call) Key() *Datum { return (*Datum)(&c.m.key) }

// Value is the record's value.
func (c *Call) Value() *Datum { return (*Datum)(&c.m.value) }

// Other is, in a join, the value of the other side; null if it is missing.
func (c *Call) Other() *Datum { return (*Datum)(&c.m.other) }

// Acc is, in an aggregate, the value so far; nil if there is none.
func (c *Call) Acc() *Datum { return (*Datum)(c.acc) }

// Timestamp is in ms since the epoch.
func (c *Call) Timestamp() int64 { return c.m.ts }

// Window is that of a window's result.
func (c *Call) Window() window.Bounds { return c.m.window }

// Source is the record that was read. It is not to be changed.
func (c *Call) Source() *kgo.Record { return c.m.source }

// Datum is a key or a value as Go functions read and make it. Its format is known where it is used.
type Datum datum

// Null reports whether there is no value.
func (d *Datum) Null() bool { return d.null }

// Text is a datum of format String. It shares the memory of the record.
func (d *Datum) Text() string { return (*datum)(d).text() }

// Int is a datum of format Int.
func (d *Datum) Int() int64 { return (*datum)(d).int() }

// Float is a datum of format Float.
func (d *Datum) Float() float64 { return (*datum)(d).float() }

// Bytes is the datum encoded as f, which must be its format. They are not to be changed.
func (d *Datum) Bytes(f Format) ([]byte, error) {
	if err := (*datum)(d).encodeAlone(f); err != nil {
		return nil, err
	}
	return d.raw, nil
}

// Object is what Keep has put aside, or SetObject set.
func (d *Datum) Object() any { return d.v }

// Keep puts a decoded form of the datum aside for those who read it next.
func (d *Datum) Keep(v any) { d.v, d.decoded = v, false }

// SetText makes it a text, SetInt a whole number, SetFloat a number, and SetBytes the encoded form of something.
func (d *Datum) SetText(s string) { *d = Datum(textDatum(s)) }

// SetInt is for format Int.
func (d *Datum) SetInt(n int64) { *d = Datum(intDatum(n)) }

// SetFloat is for format Float.
func (d *Datum) SetFloat(x float64) { *d = Datum(floatDatum(x)) }

// SetBytes is for formats String, Bytes and JSON, whose encoded form it takes over; nil is null.
func (d *Datum) SetBytes(b []byte) {
	if *d = Datum(rawDatum(b)); b == nil {
		*d = Datum(nullDatum())
	}
}

// SetObject is for format JSON: v is encoded when that is needed, as encoding/json does it. It must not change any more.
func (d *Datum) SetObject(v any) { *d = Datum(datum{v: v}) }

// DecodeDatum reads what is written as f; nil is null.
func DecodeDatum(f Format, raw []byte) (Datum, error) {
	d, err := decodeDatum(f, raw, false)
	return Datum(d), err
}

// SetNull makes it null.
func (d *Datum) SetNull() { *d = Datum(nullDatum()) }

// CanonicalJSON writes v as JSON in which objects have their fields in order of name, as topologies write it: so equal keys
// have equal bytes.
func CanonicalJSON(v any) ([]byte, error) {
	raw, err := appendJSON(nil, v, 0)
	if err != nil {
		return nil, err
	}
	if v, err = decodeJSON(raw); err != nil {
		return nil, err
	}
	return appendJSON(nil, v, 0)
}

// expression makes the function at node an expression.
func (f *Func) expression(node yamlnode.Node, s scope) *expression {
	e := &expression{node: node, text: "func", scope: s, typ: resultType{format: f.Format}, fn: f}
	if f.Name != "" {
		e.text += " " + f.Name
	}
	switch {
	case f.Truth != nil:
		e.typ = resultType{shape: truth, format: JSON}
	case f.List != nil:
		e.typ.shape = list
	}
	return e
}

// call runs the function of an expression. A value comes as a *datum, which is valid until the next call.
func (x *evaluator) call(e *expression, m *message, acc *datum) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, panicked(r)
		}
		if err != nil {
			err = e.blame(err)
		}
	}()
	before := x.calling
	x.calling = Call{m: m, acc: acc}
	defer func() { x.calling = before }()
	if e.fn.Truth != nil {
		return e.fn.Truth(&x.calling)
	}
	x.result = nullDatum()
	err = e.fn.Value(&x.calling, (*Datum)(&x.result))
	return &x.result, err
}

// blame names the function in an error.
func (e *expression) blame(err error) error {
	if e.fn.Name == "" {
		return err
	}
	return fmt.Errorf("function %s: %w", e.fn.Name, err)
}

// callEach runs the function of an expression that gives a list. What it does wrong itself is a fault; an error of do ends it as
// it is.
func (x *evaluator) callEach(e *expression, m *message, do func(datum) error) (err error) {
	var stopped error
	defer func() {
		if r := recover(); r != nil {
			err = panicked(r)
		}
		switch {
		case stopped != nil:
			err = stopped
		case err != nil:
			err = fault{e.blame(err)}
		}
	}()
	// What follows changes m, and calls functions too.
	here := *m
	return e.fn.List(&Call{m: &here}, func(d Datum) error {
		if stopped == nil {
			stopped = do(datum(d))
		}
		return stopped
	})
}

// panicked makes an error of a panic, with the place in the program where it was.
func panicked(r any) error {
	var pcs [64]uintptr
	n := runtime.Callers(3, pcs[:])
	frames := runtime.CallersFrames(pcs[:n])
	place := ""
	for more := true; more && place == ""; {
		var f runtime.Frame
		if f, more = frames.Next(); !strings.HasPrefix(f.Function, "runtime.") {
			place = fmt.Sprintf(" at %s:%d", filepath.Base(f.File), f.Line)
		}
	}
	if err, ok := r.(error); ok {
		return fmt.Errorf("panic%s: %w", place, err)
	}
	return errors.New("panic" + place + ": " + fmt.Sprint(r))
}
