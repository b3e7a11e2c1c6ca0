package topologytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// BenchmarkExpiryAfterBadRecords is the cost of a record of an aggregate in windows whose rows expire, when one in ten records is
// bad: it is taken back after it has written. One operation is one record; commits are 1,000 records apart.
func BenchmarkExpiryAfterBadRecords(b *testing.B) {
	for _, kind := range []string{"tumbling: 20ms", "session: 20ms"} {
		for _, bad := range []string{"none", "one in ten"} {
			b.Run(kind[:len(kind)-6]+"/"+bad, func(b *testing.B) {
				fails := map[string]string{"none": "value", "one in ten": `offset % 10 == 0 ? 1 % int(offset - offset) : 1`}[bad]
				f := yamlnode.Parse("t.yaml", fmt.Appendf(nil, `
- name: s
  from: {topic: in, on_error: skip}
  steps: [count: {store: s, window: {%s}}, map: '%s', to: {topic: out, value: json}]
`, kind, fails), nil)
				top := topology.Parse("app", f.Root())
				if err := f.Err(); err != nil {
					b.Fatal(err)
				}
				d, err := New(Config{Topology: top, ManualCommit: true})
				if err != nil {
					b.Fatal(err)
				}
				defer d.Close()
				i := int64(0)
				for b.Loop() {
					if err := d.PipeRaw(&kgo.Record{Topic: "in", Offset: i, Key: fmt.Appendf(nil, "key-%d", i%500), Value: []byte("v"), Timestamp: time.UnixMilli(i / 4)}); err != nil {
						b.Fatal(err)
					}
					if i++; i%1000 == 0 {
						if err := d.Commit(); err != nil {
							b.Fatal(err)
						}
						clear(d.written)
					}
				}
			})
		}
	}
}
