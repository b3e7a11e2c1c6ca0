package instance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/topology"
)

// processors is a program with a custom processor of each kind of store and timer, and with the steps that go by functions. It names
// topics as files of twins do.
func processors(app string, input func(string) string) *topology.Program {
	type event struct {
		N int64  `json:"n"`
		U string `json:"u"`
	}
	type record = streams.Record[string, event]
	return streams.Build(func(b *streams.Builder) {
		events := streams.From(b, input("in-events"), streams.String, streams.JSON[event](), streams.Skip())
		// Counts by window, each handed on when it is over, or taken back because of a bad record.
		streams.Process(events, "windows", streams.String, streams.Int, func(c *streams.Context[string, int64]) func(record) error {
			counts := streams.NewWindowStore(c, "window-counts", streams.String, streams.Int, 30*time.Millisecond)
			c.EveryStreamTime(5*time.Millisecond, func(at int64) error {
				for w, n := range counts.Ended(at) {
					c.ForwardAt(w.Key, n, w.Window.End)
					counts.Delete(w.Key, w.Window)
				}
				return nil
			})
			return func(r record) error {
				if r.NullKey {
					return nil
				}
				w := streams.Bounds{Start: r.Timestamp / 20 * 20, End: r.Timestamp/20*20 + 20}
				n, _ := counts.Get(r.Key, w)
				counts.Put(r.Key, w, n+1)
				if r.Value.N%7 == 0 {
					return errors.New("no sevens")
				}
				return nil
			}
		}).To(app + "-windows")
		// What a timer by the wall clock finds does not depend on when it looks: each key once.
		streams.Process(events, "greeted", streams.String, streams.String, func(c *streams.Context[string, string]) func(record) error {
			seen := streams.NewStore(c, "greetings", streams.String, streams.String)
			c.EveryWallClock(10*time.Millisecond, func(int64) error {
				for key, state := range seen.All() {
					if state == "new" {
						c.Forward(key, "hello")
						seen.Put(key, "greeted")
					}
				}
				return nil
			})
			return func(r record) error {
				if _, known := seen.Get(r.Key); !known && !r.NullKey {
					seen.Put(r.Key, "new")
				}
				return nil
			}
		}).To(app + "-last-greeted")
		user := func(r record) (string, error) { return r.Value.U, nil }
		streams.DedupeBy(events, "users", 40*time.Millisecond, streams.String, user).ToOneOf([]string{app + "-even", app + "-odd"}, func(r record) (string, error) {
			return fmt.Sprintf("%s-%s", app, []string{"even", "odd"}[r.Value.N%2]), nil
		}, streams.Header[string, event]{Name: "user", Value: func(r record) ([]byte, error) { return []byte(r.Value.U), nil }})
		streams.TopN(events.GroupByKey().TTL(20*time.Millisecond), "best", streams.Ranking[string, event]{
			N: 3, ID: user, By: func(r record) (float64, error) { return float64(r.Value.N), nil },
		}).To(app + "-top")
	})
}

// TestProcessorsKeepTheirResults is TestOperatorsKeepTheirResults for topologies in Go.
func TestProcessorsKeepTheirResults(t *testing.T) { onTwins(t, testProcessors) }

func testProcessors(t *testing.T, seed uint64, brokers []string) {
	file := operatorsFile[:strings.Index(operatorsFile, "streams:")]
	newTwins(t, file, processors, seed, brokers).goThroughAll()
}
