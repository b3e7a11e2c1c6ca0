package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Holder tells which other process has a state directory, "" if none. It takes and changes nothing. It must not be called by
// a process that has the directory itself: the operating system would drop its lock.
func Holder(dir string) (who string, err error) {
	f, err := os.Open(filepath.Join(dir, "LOCK"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking who has the state directory: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return "", fmt.Errorf("asking who has the state directory %s: %w", dir, err)
	}
	if lock.Type == syscall.F_UNLCK {
		return "", nil
	}
	return fmt.Sprintf("process %d", lock.Pid), nil
}
