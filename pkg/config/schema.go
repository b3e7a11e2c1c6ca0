package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// object is a part of a JSON Schema.
type object = map[string]any

// fromEnvironment matches a value that the environment gives.
const fromEnvironment = `\$\{[A-Za-z_]`

// Schema is a JSON Schema (draft 2020-12) of the file, made from what its reader asks for. It finds misspelt keys, values of
// the wrong kind and numbers out of bounds; names of environment variables stand for any value. What belongs together, and expressions,
// only Load can check.
func Schema() ([]byte, error) {
	root := newShape()
	for _, f := range known() {
		root.add(strings.Split(f.Path, "."), f)
	}
	schema := root.schema()
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "streamworker configuration"
	schema["properties"].(object)["streams"] = streamsSchema("stream")
	schema["properties"].(object)["tables"] = streamsSchema("table")
	schema["anyOf"] = []any{object{"required": []string{"streams"}}, object{"required": []string{"tables"}}} // the rest may come from the environment
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	return append(text, '\n'), nil
}

// shape is a value with what is below it.
type shape struct {
	field *yamlnode.Field // nil: only a mapping
	below map[string]*shape
}

func newShape() *shape { return &shape{below: make(map[string]*shape)} }

func (s *shape) add(path []string, f *yamlnode.Field) {
	if len(path) == 0 {
		s.field = f
		return
	}
	if s.below[path[0]] == nil {
		s.below[path[0]] = newShape()
	}
	s.below[path[0]].add(path[1:], f)
}

// schema allows any of the ways in which the value may be written; all, if nothing is known of it.
func (s *shape) schema() object {
	var ways []any
	if s.field != nil {
		for _, k := range s.field.Kinds {
			ways = append(ways, kindSchema(s.field, k)...)
		}
	}
	if len(s.below) > 0 && !(s.field != nil && s.field.Is(yamlnode.Texts)) {
		ways = append(ways, s.mapping())
	}
	out := object{}
	switch {
	case len(ways) == 1:
		out = ways[0].(object)
	case len(ways) > 1:
		out["anyOf"] = ways
	}
	if s.field != nil {
		if d := descriptions[s.field.Path]; d.Meaning != "" {
			out["description"] = d.Meaning
			if d.Default == "" {
				out["default"] = s.field.Default
			}
		}
	}
	return out
}

func (s *shape) mapping() object {
	properties, required := object{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(s.below)) {
		properties[name] = s.below[name].schema()
		if f := s.below[name].field; f != nil && f.Required && strings.Contains(f.Path, " ") {
			required = append(required, name)
		}
	}
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// kindSchema are the ways to write a value of one kind.
func kindSchema(f *yamlnode.Field, k yamlnode.Kind) []any {
	reference := object{"type": "string", "pattern": fromEnvironment}
	scalar := object{"type": []string{"string", "number", "boolean"}}
	switch k {
	case yamlnode.Choice:
		return []any{object{"enum": f.Choices}, reference}
	case yamlnode.Bool:
		return []any{object{"type": "boolean"}, reference}
	case yamlnode.Integer:
		return []any{object{"type": "integer", "minimum": f.Least, "maximum": f.Most}, object{"type": "string", "pattern": `^[0-9_]+$|` + fromEnvironment}}
	case yamlnode.Duration:
		return []any{object{"type": "string", "pattern": `^\s*([0-9.]+(ns|us|µs|ms|s|m|h))+\s*$|` + fromEnvironment}}
	case yamlnode.Size, yamlnode.Rate:
		return []any{object{"const": 0}, object{"type": "string", "pattern": `^\s*[0-9.]+\s*([KMGTkmgt][iI]?)?[bB](/s)?\s*$|^0$|` + fromEnvironment}}
	case yamlnode.Texts:
		return []any{object{"type": "object", "additionalProperties": scalar}}
	case yamlnode.List:
		return []any{object{"type": "array", "items": scalar}}
	default:
		return []any{scalar}
	}
}

// step is how the fields of a step are called.
var step = regexp.MustCompile(`^(?:stream|table) probe, step \d+, ([a-z_]+)`)

// streamsSchema finds out what may be said of streams or tables by having some read: each step with a mapping and with a
// text, behind all that records may come from.
func streamsSchema(kind string) object {
	var src strings.Builder
	fmt.Fprintf(&src, "%ss:\n", kind)
	for _, from := range []string{"{topic: t}", "t", "{stream: s, branch: b}", "{streams: [s]}", "{table: t}"} {
		fmt.Fprintf(&src, "- name: probe\n  from: %s\n  steps:\n", from)
		for _, name := range topology.StepNames() {
			argument := "{}"
			if from == "t" {
				argument = "text"
			}
			fmt.Fprintf(&src, "  - %s: %s\n", name, argument)
		}
	}
	f := yamlnode.Parse("", []byte(src.String()), nil)
	m := f.Root().Map()
	topology.Definition{App: "probe", Tables: m.Get("tables"), Streams: m.Get("streams")}.Parse()
	one, steps := newShape(), newShape()
	for _, field := range f.Fields() {
		if m := step.FindStringSubmatch(field.Path); m != nil {
			below := strings.FieldsFunc(strings.TrimPrefix(field.Path, m[0]), func(r rune) bool { return r == '.' })
			steps.add(append([]string{m[1]}, below...), field)
		} else if below, ok := strings.CutPrefix(field.Path, kind+" probe."); ok && below != "steps" && !strings.Contains(below, "[") {
			field.Required = field.Required && below != "from.topic" // there are other things to read
			one.add(strings.Split(below, "."), field)
		}
	}
	each := steps.mapping()
	each["minProperties"], each["maxProperties"] = 1, 1
	delete(each, "required")
	scalar := object{"type": []string{"string", "number", "boolean"}}
	each["properties"].(object)["branch"] = object{"type": "array", "items": object{
		"type": "object", "properties": object{"name": scalar, "when": scalar}, "required": []string{"name"}, "additionalProperties": false,
	}}
	out := one.mapping()
	out["properties"].(object)["steps"] = object{"type": "array", "items": object{"anyOf": []any{each, object{"enum": topology.StepNames()}}}}
	if kind == "stream" {
		out["required"] = append(out["required"].([]string), "steps")
	}
	return object{"type": "array", "minItems": 1, "items": out}
}
