package state

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

const (
	minMemtable = 256 << 10
	maxMemtable = 16 << 20
)

// options are those of one task's database. fail is told of errors after which it must not be used.
func (e *Engine) options(task string, log *slog.Logger, fail func(error)) *pebble.Options {
	o := &pebble.Options{
		FS:                 e.fs,
		Cache:              e.blocks,
		FileCache:          e.files,
		DisableWAL:         true,
		FormatMajorVersion: pebble.FormatFlushableIngestExcises,
		Logger:             pebbleLogger{task: task, log: log, fatal: e.cfg.Events.Fatal},
		// Each open database has at least one memtable, most have two: more databases, smaller ones.
		MemTableSize:                uint64(min(maxMemtable, max(minMemtable, e.cfg.MemtableBytes/int64(8*max(8, e.openCount()))))),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       24,
		CompactionConcurrencyRange:  func() (int, int) { return 1, e.cfg.Compactions },
	}
	o.Experimental.CompactionScheduler = &dbCompactions{all: e.compactions}
	for l := range o.Levels {
		// Point reads that miss the row cache go to blocks: reading them again and again costs less than
		// decompressing them.
		o.Levels[l].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		o.Levels[l].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[l].IndexBlockSize = 256 << 10
	}
	o.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) {
			if errors.Is(err, pebble.ErrCancelledCompaction) {
				return
			}
			fail(fmt.Errorf("state of task %s: writing to disk: %w", task, err))
			// Pebble tries again at once and for ever; it holds its lock here, so this is its pause.
			time.Sleep(backgroundErrorPause)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			fail(fmt.Errorf("state of task %s: %w: %s: %w", task, ErrCorrupt, info.Path, info.Details))
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			log.Warn("the disk is slow", "path", info.Path, "operation", info.OpType.String(), "duration", info.Duration)
		},
	}
	return o
}

const backgroundErrorPause = 100 * time.Millisecond

// pebbleLogger passes Pebble's messages on. Pebble calls Fatalf where it cannot go on (the manifest
// could not be written, say) and relies on it not to return.
type pebbleLogger struct {
	task  string
	log   *slog.Logger
	fatal func(task string, err error)
}

func (l pebbleLogger) Infof(format string, args ...any)  { l.log.Debug(fmt.Sprintf(format, args...)) }
func (l pebbleLogger) Errorf(format string, args ...any) { l.log.Warn(fmt.Sprintf(format, args...)) }
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("state of task %s: %s", l.task, fmt.Sprintf(format, args...))
	l.log.Error("the process has to end; what was applied since the last flush is replayed at the next start", "error", err)
	l.fatal(l.task, err)
	panic(err)
}
