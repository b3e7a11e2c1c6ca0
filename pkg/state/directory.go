package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TaskFiles is what a task's database takes in a state directory.
type TaskFiles struct {
	Task  string
	Bytes int64
}

// ListDirectory tells the databases in a state directory, in order of the task's name, whoever has it. It opens none of
// them and changes nothing. What is reached through links that lead out of the directory does not count.
func ListDirectory(dir string) ([]TaskFiles, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	found, err := list(root)
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("reading the state directory %s: %w", dir, err)
	}
	return found, nil
}

// DiskSpace tells how many bytes are free for this user on the file system of a directory, and how many it has.
func DiskSpace(dir string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}

func list(root *os.Root) ([]TaskFiles, error) {
	entries, err := fs.ReadDir(root.FS(), tasksDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []TaskFiles
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		t := TaskFiles{Task: e.Name()}
		err := fs.WalkDir(root.FS(), path.Join(tasksDir, e.Name()), func(_ string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // a running instance has removed it meanwhile
				return nil
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				t.Bytes += info.Size()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, nil
}

// Directory is a state directory that is held without an engine, so that no instance uses it while a command removes
// what is in it.
type Directory struct {
	path string
	root *os.Root
	lock *dirLock
}

// TakeDirectory takes an existing state directory. It returns ErrDirInUse if another process has it. The caller must
// Close it.
func TakeDirectory(dir string, now time.Time) (*Directory, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	lock, err := lockDir(vfs.Default, dir, now)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Directory{path: dir, root: root, lock: lock}, nil
}

// RemoveTask deletes a task's database. Links are removed, never followed; nothing outside of the directory is reached.
func (d *Directory) RemoveTask(task string) error {
	if err := checkNames(task, nil); err != nil {
		return err
	}
	if err := d.root.RemoveAll(path.Join(tasksDir, task)); err != nil {
		return fmt.Errorf("removing the state of task %s in %s: %w", task, d.path, err)
	}
	return nil
}

// RemoveFile deletes a file of the directory itself, if it is there.
func (d *Directory) RemoveFile(name string) error {
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s from %s: %w", name, d.path, err)
	}
	return nil
}

// Close gives the directory back.
func (d *Directory) Close() error { return errors.Join(d.lock.release(), d.root.Close()) }
