package topology

import (
	"fmt"
	"slices"
)

// list sets up the aggregates whose value is a JSON list or object of what was brought.
func (f *folding) list() {
	s := f.step
	switch s.name {
	case "collect":
		f.start = func(_ *message, v *datum) (datum, error) { return f.collect(nil, v) }
		f.fold = func(_ *message, acc, v *datum) (datum, error) {
			items, err := f.items(acc)
			if err != nil {
				return datum{}, err
			}
			return f.collect(items, v)
		}
		f.join = func(_ *message, acc, v *datum) (datum, error) {
			a, err := f.items(acc)
			if err != nil {
				return datum{}, err
			}
			b, err := f.items(v)
			return f.last(slices.Concat(a, b)), err
		}
	case "count_distinct":
		f.start = func(_ *message, v *datum) (datum, error) { return f.note(nil, v) }
		f.fold = func(_ *message, acc, v *datum) (datum, error) {
			seen, err := f.seen(acc)
			if err != nil {
				return datum{}, err
			}
			return f.note(seen, v)
		}
		f.join = func(_ *message, acc, v *datum) (datum, error) {
			a, err := f.seen(acc)
			if err != nil {
				return datum{}, err
			}
			b, err := f.seen(v)
			for text := range b {
				a[text] = true
			}
			return jsonDatum(a), err
		}
		f.result = func(d datum) (datum, error) {
			seen, err := f.seen(&d)
			return intDatum(int64(len(seen))), err
		}
	case "top_n":
		f.start = func(_ *message, v *datum) (datum, error) { return f.rank(nil, v.v) }
		f.fold = func(_ *message, acc, v *datum) (datum, error) {
			items, err := f.items(acc)
			if err != nil {
				return datum{}, err
			}
			return f.rank(items, v.v)
		}
		f.join = func(_ *message, acc, v *datum) (datum, error) {
			items, err := f.items(acc)
			if err != nil {
				return datum{}, err
			}
			others, err := f.items(v)
			for _, entry := range others {
				if err != nil {
					break
				}
				var d datum
				d, err = f.rank(items, entry)
				items, _ = d.v.([]any)
			}
			return jsonDatum(items), err
		}
		f.result = func(d datum) (datum, error) {
			items, err := f.items(&d)
			values := make([]any, len(items))
			for i, entry := range items {
				values[i] = entry.([]any)[entryOut]
			}
			return jsonDatum(values), err
		}
	}
}

// items decodes a list.
func (f *folding) items(d *datum) ([]any, error) {
	v, err := d.boxed(JSON)
	if err != nil {
		return nil, err
	}
	items, ok := v.([]any)
	for _, item := range items {
		if entry, list := item.([]any); f.step.name == "top_n" && (!list || len(entry) != entryLen) {
			ok = false
		}
	}
	if !ok {
		return nil, fmt.Errorf("store %s holds no such list, but %s", f.step.store.Name, describe(v))
	}
	return slices.Clip(items), nil // what is appended goes into a list of its own
}

// collect appends a value.
func (f *folding) collect(items []any, v *datum) (datum, error) {
	item, err := v.boxed(f.step.folded)
	return f.last(append(items, item)), err
}

// last keeps the newest values.
func (f *folding) last(items []any) datum {
	if most := f.step.most; len(items) > most {
		items = items[len(items)-most:]
	}
	return jsonDatum(items)
}

// seen decodes the values seen so far, as JSON texts.
func (f *folding) seen(d *datum) (map[string]any, error) {
	v, err := decodedOf(d)
	if err != nil {
		return nil, err
	}
	seen, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("store %s holds no object, but %s", f.step.store.Name, describe(v))
	}
	return seen, nil
}

// decodedOf decodes JSON anew, so that the result may be changed.
func decodedOf(d *datum) (any, error) {
	if d.encoded {
		return decodeJSON(d.raw)
	}
	return d.v, nil
}

// note adds a value to those seen.
func (f *folding) note(seen map[string]any, v *datum) (datum, error) {
	item, err := v.boxed(f.step.folded)
	if err != nil {
		return datum{}, err
	}
	text, err := f.p.slabs.encodeJSON(item)
	if err != nil {
		return datum{}, err
	}
	if seen == nil {
		seen = make(map[string]any, 1)
	}
	seen[string(text)] = true
	return jsonDatum(seen), nil
}

// An entry of a ranking is a list of what it is ranked by, what is sent on, and what it is told by from others.
const (
	entryBy = iota
	entryOut
	entryID
	entryLen
)

// ranked is the entry that m brings; one that is ranked by null is nothing.
func (f *folding) ranked(m *message) (datum, bool, error) {
	s := f.step
	entry := make([]any, entryLen)
	for i, e := range []*expression{s.by, s.value, s.id} {
		var err error
		switch {
		case e != nil:
			entry[i], err = f.p.eval.boxed(e, m)
		case i == entryOut:
			entry[i], err = m.value.boxed(s.input)
		}
		if err != nil {
			return datum{}, false, blamed(err)
		}
	}
	if entry[entryBy] == nil {
		return datum{}, false, nil
	}
	return jsonDatum(entry), true, nil
}

// rank puts an entry behind those that are ranked higher or are equal, and in the place of the one with its id.
func (f *folding) rank(items []any, v any) (datum, error) {
	entry, ok := v.([]any)
	if !ok || len(entry) != entryLen {
		return datum{}, fmt.Errorf("store %s holds no ranking", f.step.store.Name)
	}
	if f.step.id != nil {
		id, err := f.text(entry[entryID])
		if err != nil {
			return datum{}, err
		}
		items = slices.DeleteFunc(slices.Clone(items), func(one any) bool {
			other, errOther := f.text(one.([]any)[entryID])
			return errOther == nil && other == id
		})
	}
	at := len(items)
	for i, one := range items {
		order, err := compareValues(entry[entryBy], one.([]any)[entryBy])
		if err != nil {
			return datum{}, err
		}
		if order > 0 {
			at = i
			break
		}
	}
	items = slices.Insert(slices.Clip(items), at, any(entry))
	return jsonDatum(items[:min(len(items), f.step.most)]), nil
}

func (f *folding) text(v any) (string, error) {
	text, err := f.p.slabs.encodeJSON(v)
	return string(text), err
}
