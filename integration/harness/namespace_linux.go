package harness

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Namespace is a network of its own with nothing in it but a loopback interface. A process that is started in it
// reaches what listens there (see Proxy), and nothing else. It needs the rights of root.
type Namespace struct {
	jobs chan func()
}

// NewNamespace makes one.
func NewNamespace() (*Namespace, error) {
	n := &Namespace{jobs: make(chan func())}
	made := make(chan error)
	go func() {
		// The thread stays in the namespace, and ends with this goroutine, as it is never unlocked.
		runtime.LockOSThread()
		err := os.NewSyscallError("unshare", syscall.Unshare(syscall.CLONE_NEWNET))
		if err == nil {
			err = raiseLoopback()
		}
		made <- err
		if err != nil {
			return
		}
		for job := range n.jobs {
			job()
		}
	}()
	if err := <-made; err != nil {
		return nil, fmt.Errorf("making a network namespace: %w", err)
	}
	return n, nil
}

// Do runs f inside the namespace. Sockets that it makes and processes that it starts stay there.
func (n *Namespace) Do(f func() error) error {
	result := make(chan error)
	n.jobs <- func() { result <- f() }
	return <-result
}

// Close gives the namespace up; it ends with the last process and socket in it. Do may not be called any more.
func (n *Namespace) Close() { close(n.jobs) }

// raiseLoopback sets the interface lo up.
func raiseLoopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer syscall.Close(fd)
	request := struct { // ifreq
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return os.NewSyscallError("ioctl", errno)
	}
	return nil
}
