package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/streamworker/streamworker/pkg/admin"
	"github.com/streamworker/streamworker/pkg/state"
)

const (
	checkDirectory = "state directory"
	checkFiles     = "open files"
)

// Free space of the state directory's file system below which an instance fails soon, and below which somebody should look.
const (
	leastFree = 256 << 20 // bytes: the ballast and the memtables that are to be flushed
	fewFree   = 10        // percent
)

// directory checks the local state.
func (d *Doctor) directory(ctx context.Context) {
	dir, err := filepath.Abs(d.cfg.State.Dir)
	var there string
	if err == nil {
		there, err = existing(dir)
	}
	if err != nil {
		d.tell(checkDirectory, Failed, "%v: set state.dir or --state-dir to a directory that can be made", err)
		return
	}
	const write, search = 2, 1
	if err := syscall.Access(there, write|search); err != nil {
		d.tell(checkDirectory, Failed, "%s cannot be written to by this user: %v: change its owner or its mode, or set state.dir", there, err)
	} else if there != dir {
		d.tell(checkDirectory, OK, "%s does not exist; the first start makes it in %s", dir, there)
	} else {
		d.tell(checkDirectory, OK, "%s can be written to", dir)
	}
	d.space(there)
	if there == dir {
		d.contents(dir)
		d.holder(ctx, dir)
	}
}

// existing is the directory itself, or the nearest one above it that exists.
func existing(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	for ; err == nil; dir = filepath.Dir(dir) {
		info, errStat := os.Stat(dir)
		switch {
		case errStat == nil && info.IsDir():
			return dir, nil
		case errStat == nil:
			return "", &fs.PathError{Op: "use", Path: dir, Err: syscall.ENOTDIR}
		case !errors.Is(errStat, fs.ErrNotExist):
			return "", errStat
		}
	}
	return "", err
}

func (d *Doctor) space(dir string) {
	free, total, err := state.DiskSpace(dir)
	if err != nil {
		d.tell(checkDirectory, Skipped, "it is not known how much is free: %v", err)
		return
	}
	percent := float64(free) / float64(max(1, total)) * 100
	switch {
	case free < leastFree:
		d.tell(checkDirectory, Failed, "%d MiB are free in %s: free some space; an instance needs at least %d MiB beside its state", free>>20, dir, leastFree>>20)
	case percent < fewFree:
		d.tell(checkDirectory, Warning, "%.1f GiB (%.0f %%) are free in %s: compaction needs room; free some space", float64(free)/(1<<30), percent, dir)
	default:
		d.tell(checkDirectory, OK, "%.1f GiB (%.0f %%) are free", float64(free)/(1<<30), percent)
	}
}

func (d *Doctor) contents(dir string) {
	tasks, err := state.ListDirectory(dir)
	if err != nil {
		d.tell(checkDirectory, Failed, "%v: give this user the right to read it", err)
		return
	}
	var bytes int64
	for _, t := range tasks {
		bytes += t.Bytes
	}
	d.tell(checkDirectory, OK, "it has the state of %d tasks, %d MiB", len(tasks), bytes>>20)
	aside, err := os.ReadDir(filepath.Join(dir, "set-aside"))
	if err == nil && len(aside) > 0 {
		d.tell(checkDirectory, Warning, "%d databases are set aside in %s because they could not be used: look at the disk, and remove them when nobody needs them",
			len(aside), filepath.Join(dir, "set-aside"))
	}
}

// holder tells which process has the directory. One that runs an instance is what an operator expects.
func (d *Doctor) holder(ctx context.Context, dir string) {
	client, err := admin.NewClient(dir)
	if err != nil {
		d.tell(checkDirectory, Failed, "%v", err)
		return
	}
	defer client.Close()
	reply, err := client.Status(ctx, false)
	if err == nil {
		d.tell(checkDirectory, OK, "instance %s of %s runs here: %s", reply.Instance.Instance, reply.App, reply.Instance.State)
		return
	}
	if !errors.Is(err, admin.ErrNotRunning) {
		d.tell(checkDirectory, Warning, "an instance runs here and does not answer: %v", err)
		return
	}
	who, err := state.Holder(dir)
	switch {
	case err != nil:
		d.tell(checkDirectory, Skipped, "%v", err)
	case who != "":
		d.tell(checkDirectory, Warning, "it is held by %s, which does not answer as an instance: it starts or ends just now, or it is another program: no instance can start until it ends", who)
	default:
		d.tell(checkDirectory, OK, "no process has it")
	}
}

// socketsAtLeast is what an instance's connections may take beside its tables: some to each broker, and those of its own.
const socketsAtLeast = 100

// files checks that tables and connections may be open at one time.
func (d *Doctor) files() {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		d.tell(checkFiles, Skipped, "the limit is not known: %v", err)
		return
	}
	need := uint64(d.cfg.State.MaxOpenFiles + socketsAtLeast)
	if limit.Cur < need {
		d.tell(checkFiles, Failed, "a process may have %d files open; state.max_open_files and connections need %d: raise the limit (LimitNOFILE of systemd, ulimit -n), or lower state.max_open_files",
			limit.Cur, need)
		return
	}
	d.tell(checkFiles, OK, "%d may be open, %d are needed", limit.Cur, need)
}
