package instance

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
)

// smallMemtables makes the state reach the disk after few records.
const smallMemtables = countFile + "state: {memtables: 1MiB}\n"

// fullDisk is a file system in memory on which writes to some files find no space while it is full.
type fullDisk struct {
	vfs.FS
	mem  *vfs.MemFS
	full atomic.Bool
}

func newFullDisk(files func(path string) bool) *fullDisk {
	d := &fullDisk{mem: vfs.NewCrashableMem()}
	d.FS = errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.full.Load() && op.Kind == errorfs.OpFileWrite && files(op.Path) {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	return d
}

// A disk that is full under one task stops that task, which says why; the others go on, and with space again
// everything is counted.
func TestFullDiskUnderOneTask(t *testing.T) { underBoth(t, 4, testFullDiskUnderOneTask) }

func testFullDiskUnderOneTask(t *testing.T, b *bench) {
	b.mayAbort = true
	b.file = smallMemtables
	disk := newFullDisk(func(path string) bool {
		return strings.Contains(path, "/0_1/") && strings.HasSuffix(path, ".sst")
	})
	b.disk = disk
	w := b.start("a")
	b.awaitActive(w, 4)
	disk.full.Store(true)
	var failed control.Failure
	b.await("a task fails again and again", func() bool {
		b.send(10_000, 10_000) // some of it for each task, enough to be written to disk
		st := w.Status()
		if st.FailedTasks == 0 || st.Failed[0].Failures < 2 {
			return false
		}
		failed = st.Failed[0]
		return true
	})
	if failed.Task != "0_1" || !strings.Contains(failed.Error, "no space left on device") {
		t.Errorf("failed: %+v", failed)
	}
	if w.Ready() {
		t.Error("the instance is said to be ready")
	}
	// A task counts from when it was opened, and under exactly once an abort opens the others anew as well.
	last, former := map[int32]int64{}, int64(0)
	others := func() (records int64) {
		for _, ts := range w.Tasks().Tasks {
			p := ts.Task.Partition
			if p == 1 {
				continue
			}
			if ts.Records < last[p] {
				former += last[p]
			}
			last[p] = ts.Records
		}
		for _, n := range last {
			records += n
		}
		return former + records
	}
	before := others()
	b.send(400, 400)
	b.await("the other tasks go on", func() bool { return others() >= before+200 })

	disk.full.Store(false)
	b.checkComplete()
	b.await("the failure is forgotten", func() bool { return w.Status().FailedTasks == 0 && w.Ready() })
}

// Where Pebble cannot go on, the instance ends by itself and says so; a restart replays what is missing.
func TestStateThatCanNoLongerBeWritten(t *testing.T) {
	underBoth(t, 4, testStateThatCanNoLongerBeWritten)
}

func testStateThatCanNoLongerBeWritten(t *testing.T, b *bench) {
	b.mayAbort = true
	b.file = smallMemtables
	disk := newFullDisk(func(path string) bool { return strings.Contains(path, "/MANIFEST") })
	b.disk = disk
	first := b.start("a")
	b.awaitActive(first, 4)
	b.send(1000, 1000)
	b.check()
	disk.full.Store(true)
	b.await("the instance has ended", func() bool {
		b.send(10_000, 10_000)
		return len(first.done) > 0
	})
	if err := b.end(first); !errors.Is(err, ErrState) {
		t.Fatalf("it ended with %v, want %v", err, ErrState)
	}
	b.disk = disk.mem.CrashClone(vfs.CrashCloneCfg{}) // what was not synced is gone
	second := b.start("a")
	b.awaitActive(second, 4)
	b.send(1000, 1000)
	b.checkComplete()
}

// The same while the instance stops: it does not wait for ever for a store that cannot be closed.
func TestStateThatCannotBeClosed(t *testing.T) {
	b := newBench(t, config.AtLeastOnce, 1)
	disk := newFullDisk(func(path string) bool { return strings.Contains(path, "/MANIFEST") })
	b.disk = disk
	w := b.start("a")
	b.awaitActive(w, 1)
	b.send(100, 100)
	b.check()
	disk.full.Store(true)
	w.Stop(config.Release)
	b.await("the instance has ended", func() bool { return len(w.done) > 0 })
	if err := b.end(w); !errors.Is(err, ErrState) {
		t.Fatalf("it ended with %v, want %v", err, ErrState)
	}
}
