package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// dirLock is the hold on a state directory. The operating system drops it when the process ends.
type dirLock struct{ closer io.Closer }

// lockDir takes the directory for this process and writes down who has it. The note is in a file of its
// own, as taking a lock empties the lock file.
func lockDir(disk vfs.FS, dir string, now time.Time) (*dirLock, error) {
	holder := disk.PathJoin(dir, "holder")
	closer, err := disk.Lock(disk.PathJoin(dir, "LOCK"))
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) && !errors.Is(err, syscall.EAGAIN) {
			return nil, fmt.Errorf("locking the state directory %s: %w", dir, err)
		}
		who := "another process"
		if note, readErr := readFile(disk, holder); readErr == nil {
			who = note
		}
		return nil, fmt.Errorf("%w: %s is held by %s: stop it, or give each instance a directory of its own (%w)", ErrDirInUse, dir, who, err)
	}
	host, _ := os.Hostname() // only for the note
	note := fmt.Sprintf("process %d on %s since %s", os.Getpid(), host, now.UTC().Format(time.RFC3339))
	if err := writeFile(disk, holder, note); err != nil {
		return nil, errors.Join(fmt.Errorf("writing to the state directory %s: %w", dir, err), closer.Close())
	}
	return &dirLock{closer}, nil
}

func (l *dirLock) release() error { return l.closer.Close() }

func readFile(disk vfs.FS, name string) (string, error) {
	f, err := disk.Open(name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(f)
	return string(b), errors.Join(err, f.Close())
}

func writeFile(disk vfs.FS, name, content string) error {
	f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(content))
	return errors.Join(err, f.Close())
}
