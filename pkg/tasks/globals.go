package tasks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/topology"
)

// globals keeps the global tables of the instance: it reads their topics from the start, and goes on reading. Tasks that
// look into them wait until all were read to the end that they had then.
type globals struct {
	specs  []Global
	reader *state.Reader
	log    *slog.Logger
	tables map[string]*topology.GlobalTable
	box    *mailbox

	// Of the running goroutine alone.
	next     map[TopicPartition]int64 // the next offset to read
	failures map[TopicPartition]int   // in a row

	mu      sync.Mutex
	behind  map[TopicPartition]int64 // where a partition has to get; -1: not known yet
	waiting map[*mailbox]bool        // of tasks to be woken when nothing is behind
	faults  map[string]GlobalFault   // by table, of bad records
	waits   map[string]error         // by table, why its next record waits
}

func newGlobals(specs []Global, r *state.Reader, log *slog.Logger) *globals {
	g := &globals{
		specs: specs, reader: r, log: log, tables: make(map[string]*topology.GlobalTable), box: newMailbox(),
		next: make(map[TopicPartition]int64), failures: make(map[TopicPartition]int),
		behind: make(map[TopicPartition]int64), waiting: make(map[*mailbox]bool),
		faults: make(map[string]GlobalFault), waits: make(map[string]error),
	}
	for _, s := range specs {
		g.tables[s.Name] = topology.NewGlobalTable(s.Global)
		for p := range s.Partitions {
			g.behind[TopicPartition{s.Topic, p}] = -1
		}
	}
	return g
}

// of returns the tables of a subtopology.
func (g *globals) of(specs []*topology.Global) []*topology.GlobalTable {
	out := make([]*topology.GlobalTable, len(specs))
	for i, s := range specs {
		out[i] = g.tables[s.Name]
	}
	return out
}

// loaded tells whether the tables can be used. If not, the task with this mailbox is woken once they can.
func (g *globals) loaded(task *mailbox) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.behind) == 0 {
		return true
	}
	g.waiting[task] = true
	return false
}

// run reads until the context ends.
func (g *globals) run(ctx context.Context) {
	for _, s := range g.specs {
		for p := range s.Partitions {
			g.read(ctx, s, p, 0)
		}
	}
	for {
		select {
		case <-g.box.wake:
			for _, f := range g.box.take() {
				f()
			}
		case <-ctx.Done():
			for _, s := range g.specs {
				for p := range s.Partitions {
					g.reader.Remove(s.Topic, p)
				}
			}
			return
		}
	}
}

func (g *globals) read(ctx context.Context, s Global, partition int32, from int64) {
	g.reader.Add(s.Topic, partition, from, func(b state.Batch) {
		if !g.box.post(func() { g.apply(ctx, s, b) }) {
			b.Done()
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	_, behind := g.behind[TopicPartition{s.Topic, partition}]
	g.reader.Urgent(s.Topic, partition, behind)
}

// apply takes a batch into its table.
func (g *globals) apply(ctx context.Context, s Global, b state.Batch) {
	defer b.Done()
	if b.Err != nil {
		g.readError(ctx, s, b)
		return
	}
	for _, r := range b.Records {
		if !g.put(ctx, s, r) {
			return
		}
	}
	tp := TopicPartition{b.Topic, b.Partition}
	g.next[tp], g.failures[tp] = b.Next, 0
	g.mu.Lock()
	defer g.mu.Unlock()
	until, behind := g.behind[tp]
	if !behind {
		return
	}
	if until < 0 {
		until = b.HighWatermark
	}
	if g.behind[tp] = until; b.Next < until {
		return
	}
	delete(g.behind, tp)
	g.reader.Urgent(b.Topic, b.Partition, false)
	if len(g.behind) == 0 {
		for task := range g.waiting {
			task.signal()
		}
		g.waiting = nil
	}
}

// readError goes on where the log begins, if it begins elsewhere by now. Other errors are those of rights: it tries again, as they may
// be granted.
func (g *globals) readError(ctx context.Context, s Global, b state.Batch) {
	switch {
	case errors.Is(b.Err, state.ErrTopicChanged):
		g.log.Warn("the topic of a global table was created anew; what it held of it goes as it is overwritten", "table", s.Name, "topic", b.Topic)
		g.again(ctx, s, b.Partition, 0)
	case errors.Is(b.Err, state.ErrOutOfRange):
		g.again(ctx, s, b.Partition, b.LogStart)
	default:
		tp := TopicPartition{b.Topic, b.Partition}
		g.failures[tp]++
		wait := backoff(g.failures[tp])
		g.log.Error("a global table cannot be read; trying again", "table", s.Name, "topic", b.Topic, "partition", b.Partition, "retry", wait.String(), "error", b.Err)
		time.AfterFunc(wait, func() { g.box.post(func() { g.again(ctx, s, b.Partition, g.next[tp]) }) })
	}
}

func (g *globals) again(ctx context.Context, s Global, partition int32, from int64) {
	g.reader.Remove(s.Topic, partition)
	g.read(ctx, s, partition, from)
}
