package format

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Protobuf reads and writes Protobuf messages in Confluent's framing. Each record is read by the schema that it was written by.
type Protobuf struct{ schemas[*protoSchema] }

// NewProtobuf returns a codec that writes the target's message; one with no target does not write. A schema that is no Protobuf, or
// does not have the message, is an error.
func NewProtobuf(r Registry, t *Target) (*Protobuf, error) {
	if t != nil && t.Schema != "" {
		if _, err := parseProto(Schema{Type: ProtobufSchema, Text: t.Schema}, t); err != nil {
			return nil, err
		}
	}
	return &Protobuf{schemas[*protoSchema]{registry: r, typ: ProtobufSchema, parse: parseProto, target: t}}, nil
}

func (p *Protobuf) String() string {
	switch {
	case p.target == nil || p.target.Trial:
		return "protobuf"
	case p.target.Message == "":
		return "protobuf, " + p.target.String()
	default:
		return "protobuf message " + p.target.Message + ", " + p.target.String()
	}
}

// protoSchema is a compiled file.
type protoSchema struct {
	file  protoreflect.FileDescriptor
	write protoreflect.MessageDescriptor // what is written by it; nil: nothing
	index []int                          // the place of write in the file
	// writtenOut says that the text declares the messages that maps are made of.
	writtenOut bool
}

// mainFile is what a schema is called while it is compiled. What it imports has the names of the references.
const mainFile = "<schema>.proto"

func parseProto(s Schema, t *Target) (*protoSchema, error) {
	texts := map[string]string{mainFile: s.Text}
	for _, r := range s.References {
		texts[r.Name] = r.Text
	}
	c := new(protoSchema)
	var err error
	if c.file, err = compileProto(texts, true); err != nil && strings.Contains(err.Error(), "map_entry option") {
		// Some serializers register the messages that maps are made of, which no schema that is written by hand may have.
		c.writtenOut = true
		c.file, err = compileProto(texts, false)
	}
	if err != nil {
		return nil, fmt.Errorf("no valid Protobuf schema: %w", err)
	}
	if t == nil {
		return c, nil
	}
	if c.write = c.find(t.Message); c.write == nil && t.Message == "" {
		return nil, errors.New("a schema without a message")
	} else if c.write == nil {
		return nil, fmt.Errorf("a schema without the message %s", t.Message)
	}
	c.index = c.place(c.file.Messages(), c.write, nil)
	return c, nil
}

// compileProto compiles the main file of some.
func compileProto(texts map[string]string, validate bool) (protoreflect.FileDescriptor, error) {
	parse := func(path string) (protocompile.SearchResult, error) {
		text, ok := texts[path]
		if !ok {
			return protocompile.SearchResult{}, os.ErrNotExist
		}
		handler := reporter.NewHandler(nil)
		file, err := parser.Parse(path, strings.NewReader(text), handler)
		if err != nil {
			return protocompile.SearchResult{}, err
		}
		result, err := parser.ResultFromAST(file, validate, handler)
		return protocompile.SearchResult{ParseResult: result}, err
	}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(parse)), MaxParallelism: 1}
	files, err := compiler.Compile(context.Background(), mainFile)
	if err != nil {
		return nil, err
	}
	return files[0], nil
}

// declared are the messages that the schema's text declares. The library adds one for each map; these have no place in
// the frame.
func (c *protoSchema) declared(in protoreflect.MessageDescriptors) []protoreflect.MessageDescriptor {
	out := make([]protoreflect.MessageDescriptor, 0, in.Len())
	for i := range in.Len() {
		if m := in.Get(i); c.writtenOut || !m.IsMapEntry() {
			out = append(out, m)
		}
	}
	return out
}

// place finds where a message is declared; nil: not there.
func (c *protoSchema) place(in protoreflect.MessageDescriptors, m protoreflect.MessageDescriptor, before []int) []int {
	for i, one := range c.declared(in) {
		here := append(before[:len(before):len(before)], i)
		if one == m {
			return here
		}
		if found := c.place(one.Messages(), m, here); found != nil {
			return found
		}
	}
	return nil
}

// find returns the message with a name, which may leave the package out; the first one for "". Nil: there is none.
func (c *protoSchema) find(name string) protoreflect.MessageDescriptor {
	var search func(in protoreflect.MessageDescriptors) protoreflect.MessageDescriptor
	search = func(in protoreflect.MessageDescriptors) protoreflect.MessageDescriptor {
		for _, m := range c.declared(in) {
			if full := string(m.FullName()); name == "" || full == name || full == string(c.file.Package())+"."+name {
				return m
			}
			if found := search(m.Messages()); found != nil {
				return found
			}
		}
		return nil
	}
	return search(c.file.Messages())
}

// at returns the message at a place in the file; nil: there is none.
func (c *protoSchema) at(index []int) protoreflect.MessageDescriptor {
	in, found := c.declared(c.file.Messages()), protoreflect.MessageDescriptor(nil)
	for _, i := range index {
		if i < 0 || i >= len(in) {
			return nil
		}
		found = in[i]
		in = c.declared(found.Messages())
	}
	return found
}

// mostNested bounds the nesting of a message's definition in others.
const mostNested = 64

// Decode implements Codec.
func (p *Protobuf) Decode(raw []byte) (any, error) {
	id, data, err := header.DecodeID(raw)
	if err != nil {
		return nil, errFrame
	}
	s, err := p.byID(id)
	if err != nil {
		return nil, err
	}
	index, data, err := header.DecodeIndex(data, mostNested)
	if err != nil {
		return nil, errors.New("behind the id of a schema there is no place of a message in it")
	}
	desc := s.at(index)
	if desc == nil {
		return nil, fmt.Errorf("schema %d has no message at %v", id, index)
	}
	v, err := readBytes(desc, data)
	if err != nil {
		return nil, fmt.Errorf("not valid Protobuf of schema %d, message %s: %w", id, desc.FullName(), err)
	}
	return v, nil
}

func readBytes(desc protoreflect.MessageDescriptor, data []byte) (any, error) {
	m := dynamicpb.NewMessage(desc)
	if err := unmarshal(data, m); err != nil {
		return nil, err
	}
	return readMessage(m)
}

// unmarshal calls the library, which panics for some entries of maps whose key is not of its type.
func unmarshal(data []byte, m proto.Message) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return errors.New(plain(err))
	}
	return nil
}

// plain is the library's text without what it varies from build to build, lest anyone rely on it.
func plain(err error) string { return strings.ReplaceAll(err.Error(), "\u00a0", " ") }

// Append implements Codec.
func (p *Protobuf) Append(b []byte, v any) ([]byte, error) {
	if p.target == nil {
		return b, errReadOnly
	}
	w, err := p.forWriting()
	if err != nil {
		return b, err
	}
	m := dynamicpb.NewMessage(w.schema.write)
	if err := fillMessage(m, v); err != nil {
		return b, fmt.Errorf("not of schema %d: %w", w.id, err)
	}
	if b, err = header.AppendEncode(b, w.id, w.schema.index); err != nil {
		return b, err
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
}
