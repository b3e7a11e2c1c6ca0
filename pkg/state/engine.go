package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Engine owns a state directory and what its databases share.
type Engine struct {
	cfg  Config
	log  *slog.Logger
	fs   vfs.FS
	lock *dirLock

	blocks      *pebble.Cache
	files       *pebble.FileCache
	rows        budget
	stored      []StoredStore // found at the start
	compactions *compactions

	unflushed atomic.Int64  // bytes applied and not flushed, all databases
	wake      chan struct{} // something is to be flushed before the next tick

	reserved sync.WaitGroup // tasks being opened or removed

	mu struct {
		sync.Mutex
		closed bool
		open   map[string]*DB // nil while being opened or removed
		local  map[string]LocalTask
	}
}

// NewEngine takes the state directory and looks at what is in it. It returns ErrDirInUse if another
// process has it.
func NewEngine(cfg Config) (*Engine, error) {
	if err := cfg.ensureDefaults(); err != nil {
		return nil, err
	}
	if err := makeDirs(cfg.FS, cfg.Dir); err != nil {
		return nil, fmt.Errorf("making the state directory %s: %w", cfg.Dir, err)
	}
	lock, err := lockDir(cfg.FS, cfg.Dir, cfg.Now())
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:         cfg,
		log:         cfg.Logger,
		lock:        lock,
		blocks:      pebble.NewCache(cfg.BlockCacheBytes),
		files:       pebble.NewFileCache(fileCacheShards, cfg.MaxOpenFiles),
		compactions: newCompactions(cfg.Compactions),
		wake:        make(chan struct{}, 1),
	}
	e.rows.limit = cfg.RowCacheBytes
	e.mu.open = make(map[string]*DB)
	if e.fs, err = e.withBallast(cfg.FS); err == nil {
		e.mu.local, err = e.scan()
	}
	if err != nil {
		return nil, errors.Join(err, e.free())
	}
	return e, nil
}

const fileCacheShards = 4

// Open opens the state of a task, or starts it empty. State that cannot be used is set aside; stores
// whose checkpoint is no longer good are emptied. Both are logged and reported as events.
func (e *Engine) Open(task string, stores []StoreSpec) (*DB, error) {
	if err := checkNames(task, stores); err != nil {
		return nil, err
	}
	local, err := e.reserve(task)
	if err != nil {
		return nil, err
	}
	defer e.reserved.Done()
	dir := e.taskDir(task)
	db, err := e.openDB(task, dir, slices.Clone(stores))
	if reason := unusable(err); reason != "" {
		if err = e.setAside(task, reason); err == nil {
			local = LocalTask{}
			db, err = e.openDB(task, dir, slices.Clone(stores))
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.release(task, local)
		return nil, err
	}
	e.mu.open[task] = db
	return db, nil
}

// reserve keeps others from opening or removing the task's state and returns what is known of it.
func (e *Engine) reserve(task string) (LocalTask, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.closed {
		return LocalTask{}, ErrClosed
	}
	if _, ok := e.mu.open[task]; ok {
		return LocalTask{}, fmt.Errorf("%w: %s", ErrOpen, task)
	}
	e.mu.open[task] = nil
	e.reserved.Add(1)
	local := e.mu.local[task]
	delete(e.mu.local, task)
	return local, nil
}

// release forgets that the task is reserved or open. The caller holds mu.
func (e *Engine) release(task string, local LocalTask) {
	delete(e.mu.open, task)
	if local.Task != "" {
		e.mu.local[task] = local
	}
}

// closed is told by a DB that it has been closed.
func (e *Engine) closed(d *DB) {
	local := d.local()
	if errors.Is(d.Err(), ErrCorrupt) {
		if err := e.setAside(d.task, d.Err().Error()); err != nil {
			d.log.Error("damaged state could not be set aside; the next start meets it again", "error", err)
		}
		local = LocalTask{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.release(d.task, local)
}

// Remove deletes the state of a task that is not open.
func (e *Engine) Remove(task string) error {
	if err := checkNames(task, nil); err != nil {
		return err
	}
	local, err := e.reserve(task)
	if err != nil {
		return err
	}
	defer e.reserved.Done()
	if err = e.fs.RemoveAll(e.taskDir(task)); err == nil {
		local = LocalTask{}
		err = syncDir(e.fs, e.fs.PathJoin(e.cfg.Dir, tasksDir))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.release(task, local)
	if err != nil {
		return fmt.Errorf("removing the state of task %s: %w", task, err)
	}
	return nil
}

// Run flushes databases when they are due, until ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	lastFlush := make(map[*DB]time.Time)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			e.compactions.grant()
			e.writeOld()
		case <-e.wake:
		}
		e.flushDue(ctx, lastFlush)
	}
}

// writeOld writes what has been pending for a while in any database.
func (e *Engine) writeOld() {
	for _, d := range e.openDBs() {
		if err := d.writeOld(e.cfg.Now()); err != nil && !errors.Is(err, ErrClosed) && d.Err() == nil {
			d.log.Warn("what was committed could not be written; it is tried again", "error", err)
		}
	}
}

// flushDue flushes what is due by time or size, and the largest ones while all together are too large.
func (e *Engine) flushDue(ctx context.Context, lastFlush map[*DB]time.Time) {
	now := e.cfg.Now()
	dbs := e.openDBs()
	maps.DeleteFunc(lastFlush, func(d *DB, _ time.Time) bool { return !slices.Contains(dbs, d) })
	sizes := make(map[*DB]int64, len(dbs))
	for _, d := range dbs {
		sizes[d] = d.unflushed()
	}
	slices.SortFunc(dbs, func(a, b *DB) int { return int(sizes[b] - sizes[a]) })
	for _, d := range dbs {
		last, ok := lastFlush[d]
		if !ok {
			lastFlush[d], last = now, now
		}
		due := now.Sub(last) >= e.cfg.FlushInterval || sizes[d] >= e.cfg.FlushBytes || e.unflushed.Load() >= e.cfg.MemtableBytes
		if !due || ctx.Err() != nil {
			continue
		}
		lastFlush[d] = now
		if err := d.Flush(); err != nil && !errors.Is(err, ErrClosed) && d.Err() == nil {
			d.log.Warn("flush failed; it is tried again", "error", err)
		}
	}
}

// applied counts size bytes more to be flushed; large: by one database.
func (e *Engine) applied(size int64, large bool) {
	if e.unflushed.Add(size) >= e.cfg.MemtableBytes || large {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

func (e *Engine) flushed(size int64) { e.unflushed.Add(-size) }

func (e *Engine) openDBs() []*DB {
	e.mu.Lock()
	defer e.mu.Unlock()
	dbs := make([]*DB, 0, len(e.mu.open))
	for _, d := range e.mu.open {
		if d != nil {
			dbs = append(dbs, d)
		}
	}
	return dbs
}

// RowBytes returns what all rows in memory take.
func (e *Engine) RowBytes() int64 { return e.rows.used.Load() }

func (e *Engine) openCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.mu.open)
}

// Close closes all databases and gives the directory back.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.mu.closed {
		e.mu.Unlock()
		return ErrClosed
	}
	e.mu.closed = true
	e.mu.Unlock()
	e.reserved.Wait()
	var err error
	for _, d := range e.openDBs() {
		if cerr := d.Close(); cerr != nil && !errors.Is(cerr, ErrClosed) {
			err = errors.Join(err, cerr)
		}
	}
	return errors.Join(err, e.free())
}

func (e *Engine) free() error {
	e.files.Unref()
	e.blocks.Unref()
	return e.lock.release()
}
