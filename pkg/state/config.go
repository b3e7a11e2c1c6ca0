package state

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config says where state is kept and what all tasks together may use. Zero values take the defaults.
type Config struct {
	Dir string // state directory; made if missing

	BlockCacheBytes int64 // Pebble's blocks, uncompressed; default 32 MiB
	MemtableBytes   int64 // applied and not yet flushed to disk; default 64 MiB
	RowCacheBytes   int64 // rows in memory, clean or not; default 256 MiB
	MaxOpenFiles    int   // tables held open; default 2000
	Compactions     int   // compactions running at once; default half the cores
	BallastBytes    int64 // file that is removed when the disk is full, so that what runs can end well; default 64 MiB, negative: none

	FlushInterval time.Duration // bounds what a crash loses, to be replayed; default 60 s
	FlushBytes    int64         // the same, by size and task; default 64 MiB

	Logger *slog.Logger // default: none
	Events Events
	FS     vfs.FS           // default: the disk
	Now    func() time.Time // default: time.Now
}

// Events are told what happens. All fields are optional. They are called from any goroutine and must
// not block.
type Events struct {
	// SetAside: the state of task could not be used (reason) and was renamed to path; the task starts empty.
	SetAside func(task, path, reason string)
	// Rebuilt: the state of one store is dropped and replayed from the start of its changelog.
	Rebuilt func(task, store, reason string)
	// Failed: the open state of task can no longer be written or read; its calls return err.
	Failed func(task string, err error)
	// DiskFull: the disk was full and the ballast file was removed to go on for a while.
	DiskFull func()
	// Fatal: Pebble cannot go on after err and says that the process must end. If Fatal returns, the
	// process panics.
	Fatal func(task string, err error)
}

// StoreSpec describes a store of a task.
type StoreSpec struct {
	Name      string
	Changelog string        // topic
	TopicID   [16]byte      // of the changelog
	Retention time.Duration // delete.retention.ms of the changelog: older state is rebuilt; 0: unknown, no limit
	// Definition says what the rows are. State that was written under another one is not opened; "": any is taken.
	Definition string
}

func (c *Config) ensureDefaults() error {
	if c.Dir == "" {
		return fmt.Errorf("state: no directory given")
	}
	setDefault(&c.BlockCacheBytes, 32<<20)
	setDefault(&c.MemtableBytes, 64<<20)
	setDefault(&c.RowCacheBytes, 256<<20)
	setDefault(&c.MaxOpenFiles, 2000)
	setDefault(&c.Compactions, max(1, runtime.GOMAXPROCS(0)/2))
	setDefault(&c.BallastBytes, 64<<20)
	setDefault(&c.FlushInterval, time.Minute)
	setDefault(&c.FlushBytes, 64<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("component", "state")
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, n := range []int64{c.BlockCacheBytes, c.MemtableBytes, c.RowCacheBytes, int64(c.MaxOpenFiles), int64(c.Compactions), int64(c.FlushInterval), c.FlushBytes} {
		if n < 0 {
			return fmt.Errorf("state: a size, limit or interval of the state configuration is negative (%d)", n)
		}
	}
	e := &c.Events
	if e.SetAside == nil {
		e.SetAside = func(string, string, string) {}
	}
	if e.Rebuilt == nil {
		e.Rebuilt = func(string, string, string) {}
	}
	if e.Failed == nil {
		e.Failed = func(string, error) {}
	}
	if e.DiskFull == nil {
		e.DiskFull = func() {}
	}
	if e.Fatal == nil {
		e.Fatal = func(string, error) {}
	}
	return nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
