package instance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// sendValue produces one record that counts, or does not.
func (b *bench) sendValue(key string, value []byte, counts bool) {
	b.t.Helper()
	if counts {
		b.sent[key]++
	}
	if err := b.client.ProduceSync(context.Background(), &kgo.Record{Topic: b.app + "-in", Key: []byte(key), Value: value}).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

// TestRegistryOutage holds that records wait for their schema, whatever on_error says, and that those whose schema is known go on.
func TestRegistryOutage(t *testing.T) {
	underBoth(t, 1, func(t *testing.T, b *bench) {
		fake := srfake.New()
		defer fake.Close()
		const schema = `{"type":"record","name":"Event","fields":[{"name":"n","type":"long"}]}`
		fake.SeedSchema("events", 1, 1, sr.Schema{Schema: schema})
		fake.SeedSchema("events", 2, 2, sr.Schema{Schema: strings.Replace(schema, `"n"`, `"m"`, 1)})
		var down atomic.Bool
		fake.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			if down.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return down.Load()
		})
		b.file = strings.Replace(b.file, "streams:", fmt.Sprintf("schema_registry: {url: %q}\nstreams:", fake.URL()), 1)
		b.file = strings.Replace(b.file, "{topic: %s-in}", "{topic: %s-in, value: avro, on_error: skip}", 1)
		w := b.start("a")
		b.awaitActive(w, 1)
		b.sendValue("known", []byte("\x00\x00\x00\x00\x01\x02"), true)
		b.check()
		down.Store(true)
		b.sendValue("known", []byte("\x00\x00\x00\x00\x01\x04"), true)
		b.check()
		b.sendValue("new", []byte("\x00\x00\x00\x00\x02\x02"), true)
		b.await("the record waits, and the status says so", func() bool {
			for _, task := range w.Tasks().Tasks {
				if task.Err != nil {
					text := task.Err.Error()
					return strings.Contains(text, "schema 2: schema registry "+fake.URL()+" answers 503") && strings.Contains(text, "the record waits, it is not at fault")
				}
			}
			return false
		})
		down.Store(false)
		b.check()
		b.sendValue("bad", []byte("\x00\x00\x00\x00\x09\x02"), false)
		b.sendValue("new", []byte("\x00\x00\x00\x00\x02\x04"), true)
		b.check()
		if n := w.Totals().Skipped; n != 1 {
			t.Errorf("%d records were skipped, want that of a schema that is not there", n)
		}
	})
}

// TestOversizedRecord holds that a record which the producer does not take is a bad record, and that its task goes on.
func TestOversizedRecord(t *testing.T) {
	underBoth(t, 1, func(t *testing.T, b *bench) {
		b.file = strings.Replace(b.file, "heartbeat: 200ms", "max_message_bytes: 2048, heartbeat: 200ms", 1)
		b.file = strings.Replace(b.file, "{topic: %s-in}", "{topic: %s-in, on_error: skip}", 1)
		b.file = strings.Replace(b.file, "      - count", "      - rekey: key + \"\"\n      - reduce: acc + value\n      - count", 1)
		w := b.start("a")
		b.awaitActive(w, 2)
		b.sendValue("k", make([]byte, 1500), true)
		b.sendValue("k", make([]byte, 400), true)
		b.sendValue("k", make([]byte, 400), false) // the row would not fit
		b.sendValue("k", make([]byte, 3000), false)
		b.sendValue("k", []byte("x"), true)
		b.check()
		b.await("the bad ones are counted", func() bool { return w.Totals().Skipped == 2 })
	})
}

// TestOversizedForTopic holds the same for a topic that takes less than others.
func TestOversizedForTopic(t *testing.T) {
	underBoth(t, 1, func(t *testing.T, b *bench) {
		most := "1024"
		_, err := kadm.NewClient(b.client).AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &most}}, b.app+"-out")
		if err != nil {
			t.Fatal(err)
		}
		b.file = strings.Replace(b.file, "{topic: %s-in}", "{topic: %s-in, on_error: skip}", 1)
		b.file = strings.Replace(b.file, "value: int}", "value: int, headers: {copy: 'repeat(key, 100)'}}", 1)
		w := b.start("a")
		b.awaitActive(w, 1)
		for range 300 { // more than one batch of what the topic takes
			b.sendValue("k", []byte("x"), true)
		}
		b.sendValue("much too long", []byte("x"), false)
		b.sendValue("k", []byte("x"), true)
		b.check()
		b.await("the bad one is counted", func() bool { return w.Totals().Skipped == 1 })
	})
}
