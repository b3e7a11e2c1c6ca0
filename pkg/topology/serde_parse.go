package topology

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/streamworker/streamworker/pkg/topology/format"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// allFormats are the names of the formats of steps, and of those that a codec reads and writes.
var allFormats = append(slices.Clone(formatNames), "csv", "avro", "protobuf")

// serdeSettings are the keys of a format that is written as a mapping, and their values.
type serdeSettings struct {
	at                                 yamlnode.Node // the name
	columns, delimiter                 yamlnode.Node // of csv
	subject, schema, message, register yamlnode.Node // of what has schemas

	columnTypes         map[string]string
	delimiterText, file string
	subjectName         string
	messageName         string
	registers           bool
}

func readSerde(at yamlnode.Node, m *yamlnode.Map) *serdeSettings {
	s := &serdeSettings{at: at, columns: m.Get("columns"), delimiter: m.Get("delimiter"), subject: m.Get("subject"), schema: m.Get("schema"), message: m.Get("message"), register: m.Get("auto_register")}
	s.columnTypes, s.delimiterText = s.columns.StringMap(), s.delimiter.String(",")
	s.subjectName, s.file, s.messageName, s.registers = s.subject.String(""), s.schema.String(""), s.message.String(""), s.register.Bool(false)
	return s
}

// use says what a format is for.
type use struct {
	written bool
	topic   string // where it is written; "": to one of several
	part    string // key or value
}

// serde reads a format: its name, or a mapping of the name and its settings. The default is string.
func (b *builder) serde(n yamlnode.Node, u use) Serde {
	m, at := yamlnode.Absent(n).Map(), n
	if n.IsMap() {
		m = n.Map()
		at = m.Require("format", "write format: one of "+strings.Join(allFormats, ", "))
	} else {
		m.Get("format") // may be there
	}
	s := readSerde(at, m)
	m.Done()
	name := at.Enum(formatNames[String], allFormats...)
	if n.Exists() && !at.Exists() {
		return Serde{}
	}
	s.check(name, u.written)
	switch name {
	case "csv":
		return Serde{Format: JSON, Codec: s.csv()}
	case "avro", "protobuf":
		return Serde{Format: JSON, Codec: b.withSchema(name, s, u)}
	default:
		return Serde{Format: Format(max(0, slices.Index(formatNames, name)))}
	}
}

// check reports settings that have no effect.
func (s *serdeSettings) check(name string, written bool) {
	unused := func(why string, settings ...yamlnode.Node) {
		for _, n := range settings {
			if n.Exists() {
				n.Errorf("remove it", "it %s", why)
			}
		}
	}
	if name != "csv" {
		unused("is for csv, and the format is "+name, s.columns, s.delimiter)
	}
	switch {
	case name != "avro" && name != "protobuf":
		unused("is for avro and protobuf, and the format is "+name, s.subject, s.schema, s.message, s.register)
	case !written:
		unused("has no effect here: each record names the schema that it is read by", s.subject, s.register)
	}
	if name == "avro" {
		unused("is for protobuf, and the format is avro", s.message)
	}
}

func (s *serdeSettings) csv() format.Codec {
	var columns []format.Column
	for _, name := range s.columns.Map().Names() {
		columns = append(columns, format.Column{Name: name, Type: s.columnTypes[name]})
	}
	r, size := utf8.DecodeRuneInString(s.delimiterText)
	switch {
	case len(columns) == 0:
		s.at.Errorf("name them in their order: {format: csv, columns: {id: int, name: string}}; types: "+strings.Join(format.ColumnTypes, ", "), "csv needs columns")
		return nil
	case size != len(s.delimiterText):
		s.delimiter.Errorf("", "a delimiter is one character, got %q", s.delimiterText)
		return nil
	}
	codec, err := format.NewCSV(columns, r)
	if err != nil {
		s.columns.Errorf("types: "+strings.Join(format.ColumnTypes, ", "), "%v", err)
		return nil
	}
	return codec
}

// withSchema makes the codec of avro or protobuf.
func (b *builder) withSchema(name string, s *serdeSettings, u use) format.Codec {
	t, ok := b.target(s, u)
	if !ok {
		return nil
	}
	var codec format.Codec
	var err error
	if name == "avro" {
		codec, err = format.NewAvro(b.registry, t)
	} else {
		codec, err = format.NewProtobuf(b.registry, t)
	}
	if err != nil {
		s.schema.Errorf("", "%s holds %v", t.Source, err)
		return nil
	}
	return codec
}

// target reads by which schema something is written; nil: by none. What a source names is for trials, which write what it reads.
func (b *builder) target(s *serdeSettings, u use) (*format.Target, bool) {
	t := &format.Target{Subject: s.subjectName, Source: s.file, Register: s.registers, Message: s.messageName, Trial: !u.written}
	if t.Subject == "" && u.topic != "" {
		t.Subject = u.topic + "-" + u.part
	}
	switch {
	case b.registry == nil:
		s.at.Errorf("say where it is: schema_registry: {url: http://localhost:8081}", "schemas come from a schema registry, and none is configured")
		return nil, false
	case t.Trial && s.file == "":
		return nil, true
	case u.written && t.Subject == "":
		s.at.Errorf("write it as {format: ..., subject: NAME}", "several topics may be written to: the subject of the schema is missing")
		return nil, false
	case s.registers && s.file == "":
		s.register.Errorf("write schema: FILE beside it", "there is nothing to register without a schema")
		return nil, false
	case s.file == "":
		return t, true
	}
	file := s.file
	if !filepath.IsAbs(file) {
		file = filepath.Join(b.dir, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		s.schema.Errorf("the path starts at the directory of this file", "%v", err)
		return nil, false
	}
	t.Schema = string(text)
	return t, true
}
