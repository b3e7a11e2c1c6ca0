package format

import (
	"errors"
	"fmt"
	"sync"
)

// SchemaType is the language of a schema, as registries call it.
type SchemaType string

// The types of schemas that are read here.
const (
	AvroSchema     SchemaType = "AVRO"
	ProtobufSchema SchemaType = "PROTOBUF"
)

// Schema is a schema of a registry with all that it refers to.
type Schema struct {
	Type SchemaType
	Text string
	// References are the schemas that Text refers to, and those that these refer to: one that is referred to comes first.
	References []Reference
}

// Reference is a schema that another one refers to: for Protobuf by the name of a file, for Avro by the types in it.
type Reference struct{ Name, Text string }

// ErrNoSchema is returned when the registry answers that it has no such schema.
var ErrNoSchema = errors.New("the schema registry has no such schema")

// Registry knows schemas. Its errors are ErrNoSchema or an *Unavailable.
type Registry interface {
	// Schema returns the schema with an id.
	Schema(id int) (Schema, error)
	// Latest returns the newest schema of a subject.
	Latest(subject string) (id int, s Schema, err error)
	// ID returns the id that a schema has in a subject, and registers it if that is asked for.
	ID(subject string, s Schema, register bool) (int, error)
}

// Target says by which schema something is written.
type Target struct {
	Subject  string
	Schema   string // its text; "": the latest of the subject, as of the first record
	Source   string // where Schema comes from, for messages
	Register bool   // register Schema if the subject has it not
	Message  string // of Protobuf: what is written; "": the first message
	Trial    bool   // it is for records that a trial makes up
}

func (t *Target) String() string {
	switch {
	case t.Schema == "":
		return "latest schema of " + t.Subject
	case t.Register:
		return fmt.Sprintf("schema %s, registered as %s", t.Source, t.Subject)
	default:
		return fmt.Sprintf("schema %s of %s", t.Source, t.Subject)
	}
}

// schemas are the schemas of one type that a codec has met, as S.
type schemas[S any] struct {
	registry Registry
	typ      SchemaType
	parse    func(Schema, *Target) (S, error) // with nil it need not do for writing
	target   *Target                          // nil: nothing is written

	mu      sync.RWMutex
	known   map[int]compiled[S]
	written *written[S] // once it is known
}

// compiled is what became of a schema.
type compiled[S any] struct {
	schema S
	err    error // it is of another type, or none
}

// written is the schema that is written.
type written[S any] struct {
	id     int
	schema S
}

// byID returns the schema with an id.
func (s *schemas[S]) byID(id int) (S, error) {
	s.mu.RLock()
	c, ok := s.known[id]
	s.mu.RUnlock()
	if ok {
		return c.schema, c.err
	}
	found, err := s.registry.Schema(id)
	if err != nil {
		return c.schema, fmt.Errorf("schema %d: %w", id, err)
	}
	if c.schema, c.err = s.compile(found, nil); c.err != nil {
		c.err = fmt.Errorf("schema %d: %w", id, c.err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[int]compiled[S])
	}
	s.known[id] = c
	return c.schema, c.err
}

func (s *schemas[S]) compile(found Schema, t *Target) (S, error) {
	if found.Type != s.typ {
		var none S
		return none, fmt.Errorf("it is %s, not %s", found.Type, s.typ)
	}
	return s.parse(found, t)
}

// forWriting returns the schema to write by. Without it no record can be written, and none is to blame: so all that goes wrong
// here is an *Unavailable.
func (s *schemas[S]) forWriting() (*written[S], error) {
	s.mu.RLock()
	w := s.written
	s.mu.RUnlock()
	if w != nil {
		return w, nil
	}
	w, err := s.find(s.target)
	if err != nil {
		return nil, &Unavailable{fmt.Errorf("subject %s: %w", s.target.Subject, err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = w
	return w, nil
}

// Check tells why nothing can be written; nil: it can, or could once the schema is registered. It registers nothing.
func (s *schemas[S]) Check() error {
	if s.target == nil {
		return errReadOnly
	}
	t := *s.target
	t.Register = false
	_, err := s.find(&t)
	if s.target.Register && errors.Is(err, ErrNoSchema) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("subject %s: %w", t.Subject, err)
	}
	return nil
}

func (s *schemas[S]) find(t *Target) (*written[S], error) {
	w := new(written[S])
	found := Schema{Type: s.typ, Text: t.Schema}
	var err error
	if t.Schema == "" {
		if w.id, found, err = s.registry.Latest(t.Subject); errors.Is(err, ErrNoSchema) {
			return nil, fmt.Errorf("%w: register one, or give a schema file and auto_register: true", err)
		}
	} else if w.id, err = s.registry.ID(t.Subject, found, t.Register); errors.Is(err, ErrNoSchema) {
		return nil, fmt.Errorf("%w as %s: register it, or set auto_register: true", err, t.Source)
	}
	if err != nil {
		return nil, err
	}
	w.schema, err = s.compile(found, t)
	return w, err
}
