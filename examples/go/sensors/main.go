// Command sensors averages the readings of each sensor by minute, once the minute is over, and adds the name of its site, which a
// table has.
package main

import (
	"time"

	"github.com/streamworker/streamworker/pkg/app"
	"github.com/streamworker/streamworker/pkg/streams"
)

func main() { app.Main(build) }

type reading struct {
	Celsius float64 `json:"celsius"`
}

// mean is a sum on its way to an average.
type mean struct {
	Sum   float64 `json:"sum"`
	Count int     `json:"count"`
}

type minute struct {
	Site    string  `json:"site"`
	Start   int64   `json:"start"` // ms since the epoch
	Celsius float64 `json:"celsius"`
}

func build(b *streams.Builder) {
	readings := streams.From(b, "readings", streams.String, streams.JSON[reading](), streams.Skip())
	sites := streams.TableFrom(b, "sites", streams.String, streams.String)

	byMinute := readings.GroupByKey().WindowedBy(streams.Tumbling(time.Minute).Grace(5 * time.Second))
	means := streams.Aggregate(byMinute, "means", streams.JSON[mean](), streams.Aggregator[string, reading, mean]{
		Initial: func() mean { return mean{} },
		Add: func(m mean, r streams.Record[string, reading]) (mean, error) {
			return mean{m.Sum + r.Value.Celsius, m.Count + 1}, nil
		},
	}, streams.OnClose)

	closed := streams.Map(means.ToStream(), streams.String, streams.JSON[minute](), func(r streams.Record[string, mean]) (string, minute, error) {
		return r.Key, minute{Start: r.Window.Start, Celsius: r.Value.Sum / float64(r.Value.Count)}, nil
	})
	streams.JoinTable(closed, sites, streams.Left, streams.JSON[minute](), func(r streams.Record[string, minute], site string) (minute, error) {
		m := r.Value
		m.Site = site
		return m, nil
	}).To("minutes")
}
