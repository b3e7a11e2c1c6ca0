package control

import (
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Whatever is in the topic, it is delivered well formed or skipped.
func FuzzRecords(f *testing.F) {
	f.Add("mark/a", []byte(`{"v":1,"instance":"a","incarnation":"1-0000000000000002-0","deadline_ms":-1,"now":true}`), "")
	f.Add("mark/a", []byte(nil), "1-0000000000000002-0")
	f.Add("hello/a", []byte(`{"v":1,"instance":"a","incarnation":"1-0000000000000002-0"}`), "")
	f.Add("status/a/b", []byte(`{"v":1,"instance":"a/b","state":"running","learning":[{"task":"x"}],"lag":{"y":-1}}`), "")
	f.Add("/", []byte(`[]`), "-")
	b := &Bus{log: slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, key string, value []byte, header string) {
		if len(value) == 0 {
			value = nil
		}
		r := &kgo.Record{Key: []byte(key), Value: value, Headers: []kgo.RecordHeader{{Key: incarnationHeader, Value: []byte(header)}}}
		b.deliver(r, Handler{
			Mark: func(m Mark) {
				if m.Instance == "" || m.Version != version || m.DeadlineMs < NoDeadline {
					t.Errorf("mark %+v of %q", m, value)
				}
			},
			Cancel: func(instance string, _ assign.Incarnation) {
				if instance == "" || value != nil {
					t.Errorf("cancel %q of %q", instance, value)
				}
			},
			Hello: func(h Hello) {
				if h.Instance == "" || h.Version != version {
					t.Errorf("hello %+v of %q", h, value)
				}
			},
		})
		if _, instance, err := splitKey(r.Key); err == nil && value != nil {
			if s, err := decodeStatus(r, instance); err == nil {
				NewView("app", []Status{s}, now)
			}
		}
	})
}
