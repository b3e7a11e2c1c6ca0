package topology

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestLog(t *testing.T) {
	s := parse(t, "streams:\n  - {name: s, from: in, steps: [log: '[key, len(value)]', to: out]}").Subtopologies[0]
	out := new(discard)
	p, err := s.NewProcessor(nil, out)
	if err != nil {
		t.Fatal(err)
	}
	rec := []*kgo.Record{{Topic: "in", Key: []byte("k"), Value: []byte("four"), Timestamp: time.UnixMilli(7)}}
	var b bytes.Buffer
	for _, l := range []*slog.Logger{nil, slog.New(slog.NewTextHandler(&b, nil))} {
		p.SetLogger(l)
		if err := p.Process(0, rec); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.String(); out.n != 2 || !strings.Contains(got, `stream=s timestamp=7 record="[k 4]"`) {
		t.Errorf("%d records, log %q", out.n, got)
	}
}
