package topology

// fields is a JSON object of which only those fields are decoded that somebody looks at. It is either what a record holds, all
// of which is known to be JSON, or what an expression {"a": ..., "b": ...} gives, in order of names.
type fields struct {
	list []field
}

type field struct {
	name string
	raw  []byte // what is not decoded yet; nil: nothing
	val  scalar
}

// datum makes f the fields of a record's JSON, in place of what it was. What is no object has none. It fails as decodeJSON does.
func (f *fields) datum(raw []byte) (datum, error) {
	if raw == nil || isJSONNull(raw) {
		return nullDatum(), nil
	}
	d := rawDatum(raw)
	f.list = f.list[:0]
	s := jsonSkipper{jsonDecoder: jsonDecoder{src: raw}}
	object, ok := s.space() == '{', false
	if object {
		ok = s.fields(0, f)
	} else {
		ok = s.value(0)
	}
	if !ok || !s.end() {
		_, err := decodeJSON(raw)
		return d, err
	}
	if object {
		d.fields = f
	}
	return d, nil
}

// note adds a field of a record, whose last value counts if there are several.
func (f *fields) note(quoted []byte, plain bool, raw []byte) bool {
	name, err := unquoted(quoted, plain)
	f.list = append(f.list, field{name: name, raw: raw})
	return err == nil
}

// get returns a field; null if there is none.
func (f *fields) get(name string) (scalar, error) {
	for i := len(f.list) - 1; i >= 0; i-- {
		if one := &f.list[i]; one.name == name {
			return one.decoded()
		}
	}
	return scalar{}, nil
}

func (o *field) decoded() (scalar, error) {
	if o.raw == nil {
		return o.val, nil
	}
	d := jsonDecoder{src: o.raw}
	var err error
	switch c := o.raw[0]; {
	case c == '"':
		o.val.kind = textKind
		o.val.text, err = d.text()
	case c == '-' || isDigit(c):
		o.val, err = d.number()
	default:
		var v any
		v, err = d.value(0)
		o.val = scalarOf(v)
	}
	o.raw = nil
	return o.val, err
}

// boxed decodes all of it.
func (f *fields) boxed() (map[string]any, error) {
	m := make(map[string]any, len(f.list))
	for i := range f.list {
		v, err := f.list[i].decoded()
		if err != nil {
			return nil, err
		}
		m[f.list[i].name] = v.boxed()
	}
	return m, nil
}

// append writes the fields that an expression gave.
func (f *fields) append(b []byte) ([]byte, error) {
	b = append(b, '{')
	for i := range f.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSONText(b, f.list[i].name), ':')
		var err error
		if b, err = f.list[i].val.append(b, 1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}
