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
				l, err := e.inspect(task)
				if err != nil {
					e.log.Warn("state on disk cannot be read; opening the task will tell more", "task", task, "error", err)
				}
				if l.Task != "" {
					mu.Lock()
					found[task] = l
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
	return found, nil
}

// inspect reads the checkpoints of a closed database without changing anything.
func (e *Engine) inspect(task string) (LocalTask, error) {
	dir := e.taskDir(task)
	if info, err := e.fs.Stat(dir); err != nil || !info.IsDir() {
		return LocalTask{}, err
	}
	opts := e.options(task, e.log.With("task", task), func(error) {})
	opts.ReadOnly = true
	opts.ErrorIfNotExists = true
	p, err := pebble.Open(dir, opts)
	if errors.Is(err, pebble.ErrDBDoesNotExist) || errors.Is(err, fs.ErrNotExist) {
		return LocalTask{}, nil // the process ended while making it
	}
	if err != nil {
		return LocalTask{}, err
	}
	known, err := readCheckpoints(p, task)
	list := make([]checkpoint, 0, len(known))
	for _, c := range known {
		list = append(list, c)
	}
	return localTask(task, list), errors.Join(err, p.Close())
}
