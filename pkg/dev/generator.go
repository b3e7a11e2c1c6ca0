package dev

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology"
)

// How the generator keeps its rate: it writes what is due every pace, and drops what is due after a pause longer than
// mostDue.
const (
	pace        = 10 * time.Millisecond
	mostDue     = time.Second
	lingers     = 2 * time.Millisecond
	flushedSoon = 30 * time.Second
)

// Lines of before the stream: those of so many seconds, but no more than give each learner of the word count something to
// learn for a few seconds.
const (
	filledSeconds = 40
	mostFilled    = 40_000
)

// generator writes lines into the inputs, in turn, and counts their words.
type generator struct {
	client *kgo.Client
	inputs []feed
	rate   int // lines per second
	writer *writer

	mu     sync.Mutex
	words  map[string]int64 // of the acknowledged lines
	lines  int64            // acknowledged
	failed error
}

// feed is an input topic with the formats that its readers want.
type feed struct {
	topic      string
	keyed      bool
	key, value topology.Format
}

func newGenerator(b *broker, a *application) (*generator, error) {
	g := &generator{rate: a.cfg.Rate, writer: newWriter(), words: make(map[string]int64)}
	for _, topic := range a.topology.Inputs() {
		f := feed{topic: topic, keyed: a.own()}
		key, value := a.topology.Formats(topic)
		for _, s := range []topology.Serde{key, value} {
			if s.Codec != nil {
				return nil, fmt.Errorf("topic %s is read as %s: a trial run makes text, numbers and JSON only. Cases beside the file test it: streamworker test", strings.TrimPrefix(topic, b.prefix), s)
			}
		}
		f.key, f.value = key.Format, value.Format
		g.inputs = append(g.inputs, f)
	}
	opts := b.options(kgo.ProducerLinger(lingers))
	if !a.own() {
		// Every partition gets its share of the lines, so that a gap is one of the move and not one of the input.
		opts = append(opts, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	}
	var err error
	g.client, err = kgo.NewClient(opts...)
	return g, err
}

// fill writes the lines of before the stream, as fast as it can.
func (g *generator) fill(ctx context.Context) error {
	for range min(mostFilled, filledSeconds*g.rate) {
		g.write(ctx)
	}
	return g.flush(ctx)
}

// run writes until quit is closed, and returns when all lines are acknowledged.
func (g *generator) run(ctx context.Context, quit <-chan struct{}) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	begin, made := time.Now(), 0
	for {
		select {
		case <-quit:
			return g.flush(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		due := int(time.Since(begin).Seconds()*float64(g.rate)) - made
		if most := int(mostDue.Seconds() * float64(g.rate)); due > most {
			begin = begin.Add(time.Duration(float64(due-most) / float64(g.rate) * float64(time.Second)))
			due = most
		}
		for range due {
			g.write(ctx)
			made++
		}
		if err := g.failure(); err != nil {
			return err
		}
	}
}

// write blocks while the client's buffer is full.
func (g *generator) write(ctx context.Context) {
	words := g.writer.line()
	f := g.inputs[int(g.writer.made)%len(g.inputs)]
	r := &kgo.Record{Topic: f.topic, Value: g.writer.encode(f.value, words, false)}
	if f.keyed {
		r.Key = g.writer.encode(f.key, words, true)
	}
	g.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if err != nil {
			if g.failed == nil {
				g.failed = fmt.Errorf("writing to topic %s: %w", f.topic, err)
			}
			return
		}
		g.lines++
		for _, w := range words {
			g.words[w]++
		}
	})
}

func (g *generator) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushedSoon)
	defer cancel()
	if err := g.client.Flush(ctx); err != nil {
		return fmt.Errorf("writing the last lines: %w", err)
	}
	return g.failure()
}

func (g *generator) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// written is how many lines are acknowledged.
func (g *generator) written() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lines
}

// expected are the words of the acknowledged lines.
func (g *generator) expected() map[string]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.words)
}
