// Command wordcount counts words, as examples/wordcount.yaml does.
package main

import (
	"strings"

	"github.com/streamworker/streamworker/pkg/app"
	"github.com/streamworker/streamworker/pkg/streams"
)

func main() { app.Main(build) }

func build(b *streams.Builder) {
	lines := streams.From(b, "lines", streams.String, streams.String)
	words := streams.FlatMapValues(lines, streams.String, split)
	streams.GroupBy(words, streams.String, word).Count("counts").To("counts")
}

func split(r streams.Record[string, string]) ([]string, error) {
	return strings.Fields(strings.ToLower(r.Value)), nil
}

func word(r streams.Record[string, string]) (string, error) { return r.Value, nil }
