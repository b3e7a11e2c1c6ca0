package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/topology/format"
)

// GlobalFault tells of records of a global table's topic that cannot be read.
type GlobalFault struct {
	Table   string
	Records int64 // since the start of the instance
	Err     error // of the last one; or why the next one cannot be read yet
}

// schemaPause is how long a record waits for a schema that cannot be asked for, before it is tried again.
const schemaPause = 200 * time.Millisecond

// put takes a record into its table. A bad one is noted; one whose schema cannot be asked for waits. It returns false if the context
// ends meanwhile.
func (g *globals) put(ctx context.Context, s Global, r *kgo.Record) bool {
	for waited := false; ; waited = true {
		err := g.tables[s.Name].Put(r.Key, r.Value)
		if err != nil {
			err = fmt.Errorf("record at %s[%d] offset %d: %w", r.Topic, r.Partition, r.Offset, err)
		}
		var away *format.Unavailable
		if !errors.As(err, &away) {
			g.done(s, err, waited)
			return true
		}
		if !waited {
			g.log.Error("a global table cannot go on; trying again", "table", s.Name, "error", err)
			g.mu.Lock()
			g.waits[s.Name] = err
			g.mu.Unlock()
		}
		select {
		case <-time.After(schemaPause):
		case <-ctx.Done():
			return false
		}
	}
}

// done notes what is wrong with a record, if anything is, and that it waits no more, if it did.
func (g *globals) done(s Global, err error, waited bool) {
	if err == nil && !waited {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waits, s.Name)
	if err != nil {
		g.log.Error("a record of a global table cannot be read", "table", s.Name, "error", err)
		g.faults[s.Name] = GlobalFault{Table: s.Name, Records: g.faults[s.Name].Records + 1, Err: err}
	}
}

// faulty are the tables with records that cannot be read, in the topology's order.
func (g *globals) faulty() (out []GlobalFault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.specs {
		f, bad := g.faults[s.Name]
		if err := g.waits[s.Name]; err != nil {
			f.Table, f.Err, bad = s.Name, err, true
		}
		if bad {
			out = append(out, f)
		}
	}
	return out
}
