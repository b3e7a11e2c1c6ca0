package state

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// LocalTask is the state of a task that is on disk and not open.
type LocalTask struct {
	Task     string
	Position int64     // the sum of its stores' positions in their changelogs
	Time     time.Time // the earliest at which one of its stores was up to date; older than delete.retention.ms: of no use
}

// StoredStore is a store on disk with rows.
type StoredStore struct {
	Task, Store string
	TopicID     [16]byte // of the changelog
	Definition  string   // of the rows; "": a version wrote them that did not know of it
}

// Stored returns the stores on disk, as the engine has found them when it was made, in order of task and store.
func (e *Engine) Stored() []StoredStore { return e.stored }

// Local returns the closed state on disk in order of the task's name. It reads memory only: the disk was
// looked at when the engine was made, and what is closed since is known.
func (e *Engine) Local() []LocalTask {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]LocalTask, 0, len(e.mu.local))
	for _, l := range e.mu.local {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b LocalTask) int { return cmp.Compare(a.Task, b.Task) })
	return all
}

// local describes a database that is being closed.
func (d *DB) local() LocalTask {
	d.mu.Lock()
	defer d.mu.Unlock()
	return localTask(d.task, d.mu.written)
}

// localTask returns the zero value if there is nothing.
func localTask(task string, checkpoints []checkpoint) LocalTask {
	l := LocalTask{Task: task}
	for _, c := range checkpoints {
		if c.position == 0 {
			continue
		}
		l.Position += c.position
		if l.Time.IsZero() || c.asOf.Before(l.Time) {
			l.Time = c.asOf
		}
	}
	if l.Position == 0 {
		return LocalTask{}
	}
	return l
}

const scanners = 8

// scan looks into every database on disk, so that what it says is right after a crash as well.
func (e *Engine) scan() (map[string]LocalTask, error) {
	names, err := e.fs.List(e.fs.PathJoin(e.cfg.Dir, tasksDir))
	if err != nil {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	found := make(map[string]LocalTask)
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		work = make(chan string)
	)
	for range scanners {
		wg.Go(func() {
			for task := range work {
				l, stores, err := e.inspect(task)
				if err != nil {
					e.log.Warn("state on disk cannot be read; opening the task will tell more", "task", task, "error", err)
				}
				if l.Task != "" {
					mu.Lock()
					found[task] = l
					e.stored = append(e.stored, stores...)
					mu.Unlock()
				}
			}
		})
	}
	for _, task := range names {
		work <- task
	}
	close(work)
	wg.Wait()
	slices.SortFunc(e.stored, func(a, b StoredStore) int { return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Store, b.Store)) })
	return found, nil
}

// inspect reads the checkpoints of a closed database without changing anything.
func (e *Engine) inspect(task string) (LocalTask, []StoredStore, error) {
	dir := e.taskDir(task)
	if info, err := e.fs.Stat(dir); err != nil || !info.IsDir() {
		return LocalTask{}, nil, err
	}
	opts := e.options(task, e.log.With("task", task), func(error) {})
	opts.ReadOnly = true
	opts.ErrorIfNotExists = true
	p, err := pebble.Open(dir, opts)
	if errors.Is(err, pebble.ErrDBDoesNotExist) || errors.Is(err, fs.ErrNotExist) {
		return LocalTask{}, nil, nil // the process ended while making it
	}
	if err != nil {
		return LocalTask{}, nil, err
	}
	known, err := readCheckpoints(p, task)
	definitions, derr := readDefinitions(p)
	list := make([]checkpoint, 0, len(known))
	var stores []StoredStore
	for name, c := range known {
		list = append(list, c)
		if c.position > 0 {
			stores = append(stores, StoredStore{Task: task, Store: name, TopicID: c.topicID, Definition: definitions[name]})
		}
	}
	return localTask(task, list), stores, errors.Join(err, derr, p.Close())
}
