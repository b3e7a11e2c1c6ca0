package format

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// shelf is a registry in memory.
type shelf struct {
	schemas  map[int]Schema
	subjects map[string][]int
	down     error // answers everything, if not nil
	asked    int
}

func newShelf() *shelf {
	return &shelf{schemas: make(map[int]Schema), subjects: make(map[string][]int)}
}

func (s *shelf) put(id int, subject string, schema Schema) *shelf {
	s.schemas[id] = schema
	s.subjects[subject] = append(s.subjects[subject], id)
	return s
}

func (s *shelf) Schema(id int) (Schema, error) {
	s.asked++
	if s.down != nil {
		return Schema{}, &Unavailable{s.down}
	}
	found, ok := s.schemas[id]
	if !ok {
		return found, ErrNoSchema
	}
	return found, nil
}

func (s *shelf) Latest(subject string) (int, Schema, error) {
	s.asked++
	ids := s.subjects[subject]
	switch {
	case s.down != nil:
		return 0, Schema{}, &Unavailable{s.down}
	case len(ids) == 0:
		return 0, Schema{}, ErrNoSchema
	}
	id := ids[len(ids)-1]
	return id, s.schemas[id], nil
}

func (s *shelf) ID(subject string, schema Schema, register bool) (int, error) {
	s.asked++
	if s.down != nil {
		return 0, &Unavailable{s.down}
	}
	for _, id := range s.subjects[subject] {
		if s.schemas[id].Text == schema.Text {
			return id, nil
		}
	}
	if !register {
		return 0, ErrNoSchema
	}
	id := 100 + len(s.schemas)
	s.put(id, subject, schema)
	return id, nil
}

const pointSchema = `{"type":"record","name":"Point","fields":[{"name":"x","type":"long"},{"name":"y","type":"long"}]}`

func avroText(text string) Schema { return Schema{Type: AvroSchema, Text: text} }

func newAvro(t testing.TB, r Registry, target *Target) *Avro {
	t.Helper()
	a, err := NewAvro(r, target)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// wantError checks an error's text, and whether it says that the schema could not be asked for.
func wantError(t *testing.T, err error, want string, unavailable bool) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	var away *Unavailable
	if errors.As(err, &away) != unavailable {
		t.Errorf("error %v (%T): says that the registry could not be asked: %v, want %v", err, err, !unavailable, unavailable)
	}
}

func TestSchemaIsAskedForOnce(t *testing.T) {
	s := newShelf().put(7, "points-value", avroText(pointSchema))
	c := newAvro(t, s, &Target{Subject: "points-value"})
	for range 3 {
		raw, err := c.Append(nil, map[string]any{"x": 1, "y": 2})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Decode(raw); err != nil {
			t.Fatal(err)
		}
	}
	if s.asked != 2 {
		t.Errorf("the registry was asked %d times, want once for the subject and once for the id", s.asked)
	}
}

func TestOutage(t *testing.T) {
	s := newShelf().put(7, "points-value", avroText(pointSchema))
	known := newAvro(t, s, &Target{Subject: "points-value"})
	raw, err := known.Append(nil, map[string]any{"x": 1, "y": 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := known.Decode(raw); err != nil {
		t.Fatal(err)
	}
	s.down = errors.New("connection refused")
	if _, err := known.Append(nil, map[string]any{"x": 1, "y": 2}); err != nil {
		t.Errorf("writing by a known schema: %v", err)
	}
	if _, err := known.Decode(raw); err != nil {
		t.Errorf("reading by a known schema: %v", err)
	}
	fresh := newAvro(t, s, &Target{Subject: "points-value"})
	_, err = fresh.Decode(raw)
	wantError(t, err, "schema 7: connection refused", true)
	_, err = fresh.Append(nil, map[string]any{"x": 1, "y": 2})
	wantError(t, err, "subject points-value: connection refused", true)
	s.down = nil
	if v, err := fresh.Decode(raw); err != nil {
		t.Errorf("after the outage: %v, %v", v, err)
	}
	if _, err := fresh.Append(nil, map[string]any{"x": 1, "y": 2}); err != nil {
		t.Errorf("after the outage: %v", err)
	}
}

func TestWrongSchemas(t *testing.T) {
	s := newShelf().put(1, "proto", Schema{Type: ProtobufSchema, Text: `syntax = "proto3";`}).put(2, "broken", avroText(`{"type":"record"}`))
	c := newAvro(t, s, nil)
	for id, want := range map[byte]string{
		1: "schema 1: it is PROTOBUF, not AVRO",
		9: "schema 9: the schema registry has no such schema",
	} {
		_, err := c.Decode([]byte{0, 0, 0, 0, id, 2})
		wantError(t, err, want, false)
	}
	if _, err := c.Decode([]byte{0, 0, 0, 0, 2, 2}); err == nil || !strings.HasPrefix(err.Error(), "schema 2: no valid Avro schema: ") {
		t.Errorf("a broken schema gives %v", err)
	}
	for _, raw := range []string{"", "\x00\x00\x00\x00", "{\"x\":1}"} {
		_, err := c.Decode([]byte(raw))
		wantError(t, err, errFrame.Error(), false)
	}
}

func TestTargets(t *testing.T) {
	point := map[string]any{"x": 1, "y": 2}
	for _, tt := range []struct {
		target Target
		want   string // the id, or an error
	}{
		{Target{Subject: "points-value"}, "8"},
		{Target{Subject: "other"}, "subject other: the schema registry has no such schema: register one, or give a schema file and auto_register: true"},
		{Target{Subject: "points-value", Schema: pointSchema, Source: "point.avsc"}, "7"},
		{Target{Subject: "new", Schema: pointSchema, Source: "point.avsc"}, "subject new: the schema registry has no such schema as point.avsc: register it, or set auto_register: true"},
		{Target{Subject: "new", Schema: pointSchema, Source: "point.avsc", Register: true}, "103"},
		{Target{Subject: "proto"}, "subject proto: it is PROTOBUF, not AVRO"},
	} {
		s := newShelf().put(7, "points-value", avroText(pointSchema)).put(8, "points-value", avroText(strings.Replace(pointSchema, "Point", "Punkt", 1))).
			put(9, "proto", Schema{Type: ProtobufSchema})
		raw, err := newAvro(t, s, &tt.target).Append(nil, point)
		if err != nil {
			wantError(t, err, tt.want, true)
		} else if got := fmt.Sprint(raw[4]); got != tt.want {
			t.Errorf("%s: written by schema %s, want %s", &tt.target, got, tt.want)
		}
	}
	s := newShelf()
	for _, tt := range []struct {
		target Target
		want   string
	}{
		{Target{Subject: "new", Schema: pointSchema, Source: "point.avsc", Register: true}, ""},
		{Target{Subject: "new", Schema: pointSchema, Source: "point.avsc"}, "subject new: the schema registry has no such schema as point.avsc: register it, or set auto_register: true"},
		{Target{Subject: "new"}, "subject new: the schema registry has no such schema: register one, or give a schema file and auto_register: true"},
	} {
		err := newAvro(t, s, &tt.target).Check()
		if tt.want != "" {
			wantError(t, err, tt.want, false)
		} else if err != nil {
			t.Errorf("%s: %v", &tt.target, err)
		}
	}
	if len(s.schemas) > 0 {
		t.Errorf("a check registered %v", s.schemas)
	}
	if _, err := NewAvro(newShelf(), &Target{Schema: "{}"}); err == nil {
		t.Error("a target with a broken schema is taken")
	}
}
