package state

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The state directory:
//
//	LOCK, holder       who has it
//	ballast            space to free when the disk is full
//	tasks/<task>/      the task's database
//	set-aside/<task>-<time>/  databases that could not be used
const (
	tasksDir    = "tasks"
	setAsideDir = "set-aside"
	ballastFile = "ballast"
)

func (e *Engine) taskDir(task string) string { return e.cfg.FS.PathJoin(e.cfg.Dir, tasksDir, task) }

// checkNames refuses names that are no good as a directory's or a key's.
func checkNames(task string, stores []StoreSpec) error {
	if task == "" || task == "." || task == ".." || strings.ContainsAny(task, `/\`) {
		return fmt.Errorf("state: %q is no name for a task", task)
	}
	seen := make(map[string]bool)
	for _, s := range stores {
		if s.Name == "" || seen[s.Name] {
			return fmt.Errorf("state: task %s: store name %q is empty or used twice", task, s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

// makeDirs makes the state directory and sees to it that it is still there after a power failure.
func makeDirs(disk vfs.FS, dir string) error {
	if err := disk.MkdirAll(disk.PathJoin(dir, tasksDir), 0o755); err != nil {
		return err
	}
	return errors.Join(syncDir(disk, dir), syncDir(disk, disk.PathDir(dir)))
}

// syncDir makes what was made, renamed or removed in a directory last.
func syncDir(disk vfs.FS, dir string) error {
	f, err := disk.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// unusableError says why a database that could be opened is not the task's.
type unusableError struct{ reason string }

func (e *unusableError) Error() string { return e.reason }

// environment holds the errors that say nothing about the state itself: it may be fine once they are
// gone, or the topology is as before.
var environment = []error{
	fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE,
	syscall.ENOMEM, syscall.EIO, syscall.EAGAIN, syscall.EBUSY, syscall.EINTR, ErrRedefined,
}

// unusable returns why the state that gave this error at opening has to be set aside, "" if it need not be.
func unusable(err error) string {
	if err == nil {
		return ""
	}
	for _, e := range environment {
		if errors.Is(err, e) {
			return ""
		}
	}
	return err.Error()
}

// setAside moves a task's database out of the way, for somebody to look at.
func (e *Engine) setAside(task, reason string) error {
	dir := e.fs.PathJoin(e.cfg.Dir, setAsideDir)
	if err := e.fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("setting the state of task %s aside: %w", task, err)
	}
	stamp := e.cfg.Now().UTC().Format("20060102T150405.000")
	path := e.fs.PathJoin(dir, task+"-"+stamp)
	for n := 2; ; n++ {
		if _, err := e.fs.Stat(path); errors.Is(err, fs.ErrNotExist) {
			break
		}
		path = e.fs.PathJoin(dir, fmt.Sprintf("%s-%s-%d", task, stamp, n))
	}
	if err := e.fs.Rename(e.taskDir(task), path); err != nil {
		return fmt.Errorf("setting the state of task %s aside: %w", task, err)
	}
	e.log.Error("the state of the task cannot be used; it is set aside and rebuilt from the changelogs; remove it when nobody needs to look at it",
		"task", task, "path", path, "reason", reason)
	e.cfg.Events.SetAside(task, path, reason)
	return nil
}

// withBallast returns a file system that removes the ballast when the disk is full and goes on.
func (e *Engine) withBallast(disk vfs.FS) (vfs.FS, error) {
	if e.cfg.BallastBytes < 0 {
		return disk, nil
	}
	path := disk.PathJoin(e.cfg.Dir, ballastFile)
	if info, err := disk.Stat(path); err != nil || info.Size() != e.cfg.BallastBytes {
		if err := writeBallast(disk, path, e.cfg.BallastBytes); err != nil {
			return nil, fmt.Errorf("making the ballast file %s of %d bytes: %w", path, e.cfg.BallastBytes, err)
		}
	}
	return vfs.OnDiskFull(disk, func() {
		err := disk.Remove(path)
		e.log.Error("the disk is full: the ballast file is removed so that running tasks can end well; free some space and restart",
			"path", path, "error", err)
		e.cfg.Events.DiskFull()
	}), nil
}

func writeBallast(disk vfs.FS, path string, size int64) error {
	f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	for chunk := make([]byte, 1<<20); size > 0 && err == nil; size -= int64(len(chunk)) {
		_, err = f.Write(chunk[:min(size, int64(len(chunk)))])
	}
	return errors.Join(err, f.Close())
}
