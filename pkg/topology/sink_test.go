package topology

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// TestComputedTopicHasPrefix holds that expressions give the names of the file, whatever prefix the topics have.
func TestComputedTopicHasPrefix(t *testing.T) {
	f := yamlnode.Parse("test.yaml", []byte(`
- {name: s, from: in, steps: [to: {topic_expr: key, topics: [a, b]}]}
`), nil)
	top := Definition{App: "try-app", Prefix: "try-", Tables: yamlnode.Absent(f.Root()), Streams: f.Root()}.Parse()
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	out, err := newAppOf(t, top).feed(&kgo.Record{Topic: "try-in", Key: []byte("b"), Value: []byte("x")})
	if err != nil || len(out) != 1 || out[0].Topic != "try-b" {
		t.Errorf("got %v, %v", out, err)
	}
	if topics := top.Outputs(); len(topics) != 2 || topics[0] != "try-a" || topics[1] != "try-b" {
		t.Errorf("the outputs are %v", topics)
	}
}
