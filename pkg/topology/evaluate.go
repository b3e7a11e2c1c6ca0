package topology

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/window"
)

// message is one record on its way through a chain. Steps change it in place.
type message struct {
	key, value datum
	other      datum         // what it is joined with
	old        datum         // of a table: the value before, if what follows wants to know
	ts         int64         // ms since the epoch: the largest of what went into it
	window     window.Bounds // of a window's result, also where its key was changed
	source     *kgo.Record   // gives headers, and the place to blame for errors
}

// evaluator runs expressions; one per processor, as it is used by one goroutine at a time.
type evaluator struct {
	machine vm.VM
	env     map[string]any
	calling Call  // of a function
	result  datum // likewise
}

// run evaluates e over m; acc is nil unless e sees it.
func (x *evaluator) run(e *expression, m *message, acc *datum) (any, error) {
	if v, ok := e.compute(m); ok {
		return v.boxed(), nil
	}
	return x.interpret(e, m, acc)
}

// interpret is run for what is not computed: by the library, or by the function in place of an expression.
func (x *evaluator) interpret(e *expression, m *message, acc *datum) (any, error) {
	if e.fn != nil {
		return x.call(e, m, acc)
	}
	if err := x.fill(e, m, acc); err != nil {
		return nil, err
	}
	v, err := x.machine.Run(e.program, x.env)
	if err != nil {
		return nil, e.explain(m, err)
	}
	return v, nil
}

// boxed evaluates e and gives what an expression gives, of a function too.
func (x *evaluator) boxed(e *expression, m *message) (any, error) {
	v, err := x.run(e, m, nil)
	if d, ok := v.(*datum); ok && err == nil {
		return d.boxed(e.typ.format)
	}
	return v, err
}

// fill sets only the names that e reads: putting a value into an interface costs an allocation.
func (x *evaluator) fill(e *expression, m *message, acc *datum) (err error) {
	if e.uses&usesValue != 0 {
		if x.env["value"], err = m.value.boxed(e.scope.value); err != nil {
			return err
		}
	}
	if e.uses&usesKey != 0 {
		if x.env["key"], err = m.key.boxed(e.scope.key); err != nil {
			return err
		}
	}
	if e.uses&usesAcc != 0 && acc != nil {
		if x.env["acc"], err = acc.boxed(e.scope.accOf); err != nil {
			return err
		}
	}
	if e.uses&usesOther != 0 {
		if x.env["other"], err = m.other.boxed(e.scope.other); err != nil {
			return err
		}
	}
	if e.uses&^(usesKey|usesValue|usesAcc|usesOther) == 0 {
		return nil
	}
	if e.uses&usesTimestamp != 0 {
		x.env["timestamp"] = int(m.ts)
	}
	if e.uses&usesWindow != 0 {
		x.env["window_start"], x.env["window_end"] = int(m.window.Start), int(m.window.End)
	}
	if e.uses&usesTopic != 0 {
		x.env["topic"] = m.source.Topic
	}
	if e.uses&usesPartition != 0 {
		x.env["partition"] = int(m.source.Partition)
	}
	if e.uses&usesOffset != 0 {
		x.env["offset"] = int(m.source.Offset)
	}
	if e.uses&usesHeaders != 0 {
		headers := make(map[string]string, len(m.source.Headers))
		for _, h := range m.source.Headers {
			headers[h.Key] = string(h.Value)
		}
		x.env["headers"] = headers
	}
	return nil
}

// mostMessage bounds the library's messages in bytes: some quote a whole value, and they go into headers of dead letters.
const mostMessage = 200

// explain makes one line of the library's error, and says first what is most likely the reason.
func (e *expression) explain(m *message, err error) error {
	message := err.Error()
	var at *file.Error
	if errors.As(err, &at) {
		message = at.Message
	}
	message = strings.ReplaceAll(message, "interface conversion: interface {} is ", "it is ")
	if len(message) > mostMessage {
		message = strings.ToValidUTF8(message[:mostMessage], "") + "..."
	}
	why := ""
	if e.uses&usesValue != 0 && m.value.null {
		why = "value is null: "
	} else if e.uses&usesKey != 0 && m.key.null {
		why = "key is null: "
	} else if e.uses&usesOther != 0 && m.other.null {
		why = "other is null: "
	}
	return fmt.Errorf("expression %s: %s%s", e.text, why, message)
}

// datum evaluates e and takes the result as format f, to which e's type must fit.
func (x *evaluator) datum(e *expression, m *message, f Format) (datum, error) {
	switch {
	case e.text == "value" && e.scope.value == f:
		return m.value, nil
	case e.text == "key" && e.scope.key == f:
		return m.key, nil
	case e.text == "other" && e.scope.joined && e.scope.other == f:
		return m.other, nil
	case e.native.text != nil && f == String && e.covers(m):
		return textDatum(e.native.text(m)), nil
	case e.native.whole != nil && f == Int && e.covers(m):
		return intDatum(e.native.whole(m)), nil
	}
	if v, ok := e.compute(m); ok {
		if d, ok := v.datum(f); ok {
			return d, nil
		}
	}
	v, err := x.interpret(e, m, nil)
	if err != nil {
		return datum{}, err
	}
	d, err := unbox(v, f)
	if err != nil {
		return datum{}, fmt.Errorf("expression %s: %w", e.text, err)
	}
	return d, nil
}

// truth evaluates a condition.
func (x *evaluator) truth(e *expression, m *message) (bool, error) {
	if e.native.truth != nil && e.covers(m) {
		return e.native.truth(m), nil
	}
	if v, ok := e.compute(m); ok && v.kind == truthKind {
		return v.truth(), nil
	}
	v, err := x.interpret(e, m, nil)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("expression %s: want true or false, got %s", e.text, describe(v))
	}
	return b, nil
}

// each evaluates a list and calls do for its elements in order, each as format f or with the reason why it is
// none. It stops at do's first error.
func (x *evaluator) each(e *expression, m *message, f Format, do func(datum, error) error) error {
	if e.native.parts != nil && f == String && e.covers(m) {
		return e.native.parts.each(m, do)
	}
	v, err := x.run(e, m, nil)
	if err != nil {
		return fault{err}
	}
	element := func(i int, item any) error {
		d, err := unbox(item, f)
		if err != nil {
			err = fmt.Errorf("expression %s: element %d: %w", e.text, i, err)
		}
		return do(d, err)
	}
	switch items := v.(type) {
	case []any:
		for i, item := range items {
			if err := element(i, item); err != nil {
				return err
			}
		}
		return nil
	case []string:
		if f != String {
			break
		}
		for _, s := range items {
			if err := do(textDatum(s), nil); err != nil {
				return err
			}
		}
		return nil
	}
	items := reflect.ValueOf(v)
	if v == nil || items.Kind() != reflect.Slice && items.Kind() != reflect.Array {
		return fault{fmt.Errorf("expression %s: want a list, got %s", e.text, describe(v))}
	}
	for i := range items.Len() {
		if err := element(i, items.Index(i).Interface()); err != nil {
			return err
		}
	}
	return nil
}
