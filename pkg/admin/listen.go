package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// SocketFile is the name of the socket in the state directory.
const SocketFile = "admin.sock"

// maxSocketPath is what the systems we run on allow for the path of a socket, with some to spare.
const maxSocketPath = 100

var (
	// ErrInUse is returned by ListenUnix when another process serves this state directory.
	ErrInUse = errors.New("another process uses the state directory")
	// ErrNotRunning is returned by the Client when no instance serves the state directory.
	ErrNotRunning = errors.New("no instance is running on this host with this state directory")
)

// ListenUnix opens the socket of a state directory, which must exist. It replaces the socket that a killed
// process left there, never that of a live one. Only the owner of the process may connect.
func ListenUnix(dir string) (net.Listener, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, "admin.lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the admin socket of %s: %w", dir, err)
	}
	if !locked {
		return nil, fmt.Errorf("%w: %s", ErrInUse, dir)
	}
	l, err := listenUnix(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &lockedListener{Listener: l, lock: lock}, nil
}

func listenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the admin socket of a former process: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the admin socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the admin socket: %w", err), l.Close())
	}
	return l, nil
}

// lockedListener gives the lock back after the socket is gone.
type lockedListener struct {
	net.Listener
	lock *flock.Flock
}

func (l *lockedListener) Close() error { return errors.Join(l.Listener.Close(), l.lock.Close()) }

func socketPath(dir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, SocketFile))
	if err != nil {
		return "", fmt.Errorf("find the admin socket of %s: %w", dir, err)
	}
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("the path of the admin socket, %s, has %d bytes, more than the %d that sockets may have: use a state directory with a shorter path",
			path, len(path), maxSocketPath)
	}
	return path, nil
}
