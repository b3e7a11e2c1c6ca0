package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/streamworker/streamworker/pkg/kafka"
)

const streams = `
streams:
  - {name: s, from: in, steps: [count, to: {topic: out, value: int}]}
`

var testEnv = map[string]string{"BROKERS": "a:1,b:2", "HOST": "web-1", "EMPTY": "", "PASSWORD": "s3cret"}

func lookup(name string) (string, bool) { v, ok := testEnv[name]; return v, ok }

func mustParse(t *testing.T, src string, o Overrides) *Config {
	t.Helper()
	c, err := Parse("app.yaml", []byte(src), lookup, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFiles runs scripts: "parse" prints all the mistakes of a file, or its settings apart from the streams; "kafka" and
// "registry" only how these are reached.
func TestFiles(t *testing.T) {
	datadriven.Walk(t, "testdata/files", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var o Overrides
			env := maps.Clone(testEnv)
			for _, arg := range d.CmdArgs {
				switch arg.Key {
				case "no-streams":
				case "offline":
					o.Offline = true
				case "check-files":
					o.CheckFiles = true
				case "brokers":
					o.Brokers = arg.Vals
				case "instance-id":
					o.InstanceID = arg.Vals[0]
				case "state-dir":
					o.StateDir = arg.Vals[0]
				case "label":
					o.Labels = map[string]string{arg.Vals[0]: arg.Vals[1]}
				default:
					t.Fatalf("unknown argument %s", arg.Key)
				}
			}
			src := d.Input
			for strings.HasPrefix(src, "$ ") { // $ NAME=VALUE sets a variable
				line, rest, _ := strings.Cut(src[2:], "\n")
				name, value, _ := strings.Cut(line, "=")
				env[name], src = value, rest
			}
			if !d.HasArg("no-streams") {
				src += streams
			}
			o.Variables = slices.Collect(maps.Keys(env))
			c, err := Parse("app.yaml", []byte(src), func(name string) (string, bool) { v, ok := env[name]; return v, ok }, o)
			if err != nil {
				return err.Error() + "\n"
			}
			switch d.Cmd {
			case "kafka":
				return kafkaSettings(c.Kafka)
			case "registry":
				return fmt.Sprintf("%+v\n", c.SchemaRegistry)
			}
			return settings(c)
		})
	})
}

// settings prints a configuration, one field a line.
func settings(c *Config) string {
	var b strings.Builder
	v := reflect.ValueOf(*c)
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; name {
		case "Path", "Topology", "Threads", "SchemaRegistry", "fields", "streams":
		case "Kafka":
			b.WriteString(kafkaSettings(c.Kafka))
		default:
			fmt.Fprintf(&b, "%s: %+v\n", name, v.Field(i).Interface())
		}
	}
	return b.String()
}

// kafkaSettings prints how Kafka is reached; security only if there is any.
func kafkaSettings(k Kafka) string {
	text := fmt.Sprintf("Kafka: %v Group:%s ClientID:%s Heartbeat:%s SessionTimeout:%s RebalanceTimeout:%s TransactionTimeout:%s\n", k.Brokers,
		k.Group, k.ClientID, k.Heartbeat, k.SessionTimeout, k.RebalanceTimeout, k.TransactionTimeout)
	if k.TLS != (kafka.TLS{}) {
		text += fmt.Sprintf("TLS: %+v\n", k.TLS)
	}
	if k.SASL.Mechanism != "" {
		text += fmt.Sprintf("SASL: %+v\n", k.SASL)
	}
	return text
}

// examples are the configurations among the examples.
func examples(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../../examples/*.yaml", "../../examples/jobs/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 2 {
			t.Fatalf("examples: %v, %v", found, err)
		}
		files = append(files, found...)
	}
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.yaml") })
}

func TestExamples(t *testing.T) {
	for _, file := range examples(t) {
		c, err := Load(file, os.LookupEnv, Overrides{})
		if err != nil {
			t.Error(err)
			continue
		}
		if c.Path != file || c.Topology.App != c.App || c.Threads < 1 {
			t.Errorf("%s: path %q, topology of %q, %d threads", file, c.Path, c.Topology.App, c.Threads)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "missing.yaml"), nil, Overrides{})
	if err == nil || !strings.Contains(err.Error(), "missing.yaml") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

// What differs between instances of one group must not change the hash, what must be equal must.
func TestConfigHash(t *testing.T) {
	base := "app: a\nkafka: {brokers: x}\n"
	hash := func(src string) uint64 { return mustParse(t, src, Overrides{}).ConfigHash() }
	want := hash(base + streams)
	for _, more := range []string{"instance_id: i\n", "labels: {pool: blue}\n", "threads: 7\n", "commit_interval: 1s\n", "log: {level: debug}\n", "state: {row_cache: 1MiB}\n"} {
		if hash(base+more+streams) != want {
			t.Errorf("%q changes the hash", more)
		}
	}
	for _, src := range []string{
		base + "standbys: 1\n" + streams,
		base + "balancing_factor: 3\n" + streams,
		base + "learners: {max_learners: 1}\n" + streams,
		strings.Replace(base+streams, "app: a", "app: b", 1),
		strings.Replace(base+streams, "count,", "filter: value != \"\", count,", 1),
		strings.Replace(base+streams, "from: in", "from: {topic: in, value: bytes}", 1),
		strings.Replace(base+streams, "from: in", "from: {topic: in, on_error: skip}", 1),
		strings.Replace(base+streams, "topic: out", "topic: out2", 1),
	} {
		if hash(src) == want {
			t.Errorf("the hash is the same for\n%s", src)
		}
	}
}

func TestDefaultThreads(t *testing.T) {
	if c := mustParse(t, "app: a\nkafka: {brokers: x}\nthreads: 3\ncommit_interval: 250ms\n"+streams, Overrides{}); c.Threads != 3 || c.CommitInterval != 250*time.Millisecond {
		t.Errorf("got %d threads, commit every %s", c.Threads, c.CommitInterval)
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{"../../examples/*.yaml", "testdata/files/*"} {
		files, _ := filepath.Glob(dir)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
			for _, part := range strings.Split(string(src), "\nparse") {
				f.Add([]byte(part))
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Parse("app.yaml", src, lookup, Overrides{})
		if (c == nil) == (err == nil) {
			t.Errorf("got configuration %v and error %v", c, err)
		}
	})
}

// A prefix keeps a trial apart from the application: nothing on the cluster has the same name.
func TestPrefix(t *testing.T) {
	const src = `
app: app
kafka: {brokers: "a:1", group: members}
streams:
  - {name: s, from: {topic: in, on_error: dead_letter}, steps: [rekey: value, count, to: {topic: out, value: int}]}
  - {name: t, from: {topic: other, on_error: dead_letter, dead_letter: bad}, steps: [to: out]}
`
	c := mustParse(t, src, Overrides{Prefix: "trial-"})
	if c.App != "trial-app" || c.Kafka.Group != "trial-members" || c.Kafka.ClientID != "trial-app" {
		t.Errorf("app %s, group %s, client id %s", c.App, c.Kafka.Group, c.Kafka.ClientID)
	}
	var names []string
	for _, s := range c.Topology.Subtopologies {
		names = append(names, s.Topics()...)
		for _, store := range s.Stores {
			names = append(names, store.Changelog)
		}
	}
	names = append(names, c.Topology.Outputs()...)
	if want := 7; len(names) != want { // in, its repartition topic, a changelog, other, out, two for dead letters
		t.Errorf("topics %q, want %d", names, want)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "trial-") || strings.HasPrefix(name, "trial-trial-") {
			t.Errorf("topic %s", name)
		}
	}
	if d := mustParse(t, strings.Replace(src, ", group: members", "", 1), Overrides{Prefix: "trial-"}); d.Kafka.Group != "trial-app" {
		t.Errorf("the group is %s by default", d.Kafka.Group)
	}
}
