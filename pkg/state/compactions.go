package state

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// compactions bounds the compactions of all databases together. A database that was refused waits in
// line for the next one to end.
//
// Locking: Pebble's locks come before mu, so mu is never held while a database is called, except for
// GetAllowedWithoutPermission, which takes no lock.
type compactions struct {
	limit int

	mu      sync.Mutex
	idle    *sync.Cond // a call into a database has returned
	running int
	line    []*dbCompactions
}

func newCompactions(limit int) *compactions {
	c := &compactions{limit: limit}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// dbCompactions is one database's scheduler and the handle of all its grants.
type dbCompactions struct {
	all *compactions
	db  pebble.DBForCompaction // set by Register

	// Under all.mu.
	running int
	waiting bool // in line
	calls   int  // calls into db under way
	gone    bool
}

var (
	_ pebble.CompactionScheduler   = (*dbCompactions)(nil)
	_ pebble.CompactionGrantHandle = (*dbCompactions)(nil)
)

func (d *dbCompactions) Register(_ int, db pebble.DBForCompaction) { d.db = db }

func (d *dbCompactions) Unregister() {
	c := d.all
	c.mu.Lock()
	defer c.mu.Unlock()
	d.gone = true
	for d.calls > 0 {
		c.idle.Wait()
	}
}

func (d *dbCompactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c := d.all
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.gone {
		return false, nil
	}
	if c.running < c.limit && d.running < d.db.GetAllowedWithoutPermission() {
		c.running++
		d.running++
		return true, d
	}
	if !d.waiting {
		d.waiting = true
		c.line = append(c.line, d)
	}
	return false, nil
}

// UpdateGetAllowedWithoutPermission is called with the database locked, so nothing can be granted here;
// the engine's loop calls grant from time to time.
func (d *dbCompactions) UpdateGetAllowedWithoutPermission() {}

func (d *dbCompactions) Started()                                          {}
func (d *dbCompactions) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (d *dbCompactions) CumulativeStats(pebble.CompactionGrantHandleStats) {}

func (d *dbCompactions) Done() {
	d.all.mu.Lock()
	d.all.running--
	d.running--
	d.all.mu.Unlock()
	d.all.grant()
}

// grant lets those in line start as many compactions as the limit has room for.
func (c *compactions) grant() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for tries := len(c.line); tries > 0 && c.running < c.limit; tries-- {
		d := c.line[0]
		c.line = c.line[1:]
		d.waiting = false
		if d.gone {
			continue
		}
		if d.running >= d.db.GetAllowedWithoutPermission() {
			d.wait()
			continue
		}
		c.running++
		d.running++
		d.calls++
		c.mu.Unlock()
		more, _ := d.db.GetWaitingCompaction()
		started := more && d.db.Schedule(d)
		c.mu.Lock()
		d.calls--
		c.idle.Broadcast()
		if !started {
			c.running--
			d.running--
		} else if !d.gone {
			d.wait() // it may have more to do
		}
	}
}

func (d *dbCompactions) wait() {
	if !d.waiting {
		d.waiting = true
		d.all.line = append(d.all.line, d)
	}
}
