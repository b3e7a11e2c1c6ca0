package config

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/streamworker/streamworker/pkg/topology"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, src []byte) error {
	t.Helper()
	text, err := yaml.YAMLToJSON(src)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func TestSchemaTakesExamples(t *testing.T) {
	s := compiled(t)
	for _, file := range examples(t) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, src); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Each is a file that Load takes, so the schema must; with one thing replaced both must refuse it.
func TestSchemaAgreesWithLoad(t *testing.T) {
	s := compiled(t)
	const good = `
app: a
kafka: {brokers: ["x:1", y], heartbeat: 1.5s, tls: {ca: /ca.pem}, sasl: {mechanism: PLAIN, username: me, password: "${PASSWORD}"}}
instance_id: "${HOST}"
labels: {pool: blue, zone: 1}
capacity: 4
threads: ${THREADS:-3}
state: {row_cache: 0, block_cache: 1 GiB, memtables: 64mb}
learners: {mode: eager, bandwidth: 20MiB/s}
streams:
  - {name: one, from: in, steps: [count, {to: {topic: out, value: int}}]}
  - name: two
    from: {topic: other, value: int, on_error: skip}
    steps:
      - filter: value > 1
      - map: {key: string(value), value: value}
      - sum: {store: sums, value: value}
      - to: sums
`
	if err := validate(t, s, []byte(good)); err != nil {
		t.Errorf("the schema refuses it: %v", err)
	}
	load := func(src string) error {
		_, err := Parse("app.yaml", []byte(src), lookup, Overrides{})
		return err
	}
	if err := load(strings.Replace(good, "to: sums", "to: {topic: sums, value: int}", 1)); err != nil {
		t.Errorf("Load refuses it: %v", err)
	}
	for _, change := range [][2]string{
		{"app: a", "app: a\nap: b"}, {"brokers:", "broker:"}, {"heartbeat: 1.5s", "heartbeat: 15"}, {"ca: /ca.pem", "caa: /ca.pem"},
		{"mechanism: PLAIN", "mechanism: plain"}, {"capacity: 4", "capacity: 0"}, {"capacity: 4", "capacity: many"}, {"row_cache: 0", "row_cache: 12"},
		{"mode: eager", "mode: eagr"}, {"bandwidth: 20MiB/s", "bandwidth: fast"}, {"labels: {", "labels: [{"}, {"zone: 1}", "zone: [1]}"},
		{"[count,", "[cuont,"}, {"filter:", "fliter:"}, {"store: sums", "stoer: sums"}, {"from: in,", "form: in,"}, {"topic: other", "topci: other"},
		{"on_error: skip", "on_error: skp"}, {"value: int, on", "value: integer, on"}, {"- sum: {", "- sum: {from: x, "},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if change[0] == "labels: {" {
			bad = strings.Replace(bad, "zone: 1}", "zone: 1}]", 1)
		}
		if bad == good {
			t.Fatalf("the file has no %q", change[0])
		}
		if validate(t, s, []byte(bad)) == nil {
			t.Errorf("the schema takes %q", change[1])
		}
		if load(bad) == nil {
			t.Errorf("Load takes %q", change[1])
		}
	}
}

func TestSchemaKnowsEveryStep(t *testing.T) {
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range topology.StepNames() {
		if !bytes.Contains(text, []byte(`"`+name+`": {`)) {
			t.Errorf("the schema says nothing of the step %s", name)
		}
	}
}

// What streams and tables may say is known to the schema.
func TestSchemaOfTablesWindowsAndJoins(t *testing.T) {
	const good = `
app: a
kafka: {brokers: x}
tables:
  - {name: customers, from: {topic: customers, value: json}, store: who}
  - {name: adults, from: {table: customers}, steps: [filter: value.age >= 18]}
  - {name: counts, from: {stream: orders, branch: big}, steps: [count: {window: {hopping: 5m, every: 1m, grace: 10s}, emit: close}]}
streams:
  - {name: orders, from: {topic: orders, value: json}, steps: [branch: [{name: big, when: value.n > 3}, {name: small}]]}
  - {name: rest, from: {stream: orders, branch: small}, steps: [to: {topic: small, value: json}]}
  - {name: all, from: {streams: [visits, clicks]}, steps: [to: {topic: all, value: json}]}
  - {name: visits, from: {topic: visits, value: json}, steps: [join: {table: adults, type: left, value: other}]}
  - name: clicks
    from: {topic: clicks, value: json}
    steps: [join: {stream: visits, within: 10s, before: 5s, after: 0s, grace: 1s, store: near, value: other}]
`
	s := compiled(t)
	load := func(src string) error {
		_, err := Parse("app.yaml", []byte(src), lookup, Overrides{})
		return err
	}
	if err := errors.Join(validate(t, s, []byte(good)), load(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"store: who", "stoer: who"}, {"{table: customers}", "{tabel: customers}"}, {"name: big,", "nam: big,"}, {"{name: small}]", "{}]"},
		{"within: 10s", "within: [10s]"}, {"type: left", "type: lef"}, {"emit: close", "emit: closed"}, {"tables:", "tabels:"}, {"within:", "wihtin:"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if validate(t, s, []byte(bad)) == nil {
			t.Errorf("the schema takes %q", change[1])
		}
		if load(bad) == nil {
			t.Errorf("Load takes %q", change[1])
		}
	}
}
