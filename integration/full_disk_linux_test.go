//go:build integration

package integration

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// smallDisk mounts a small file system on the place of an instance's state.
func (s *scene) smallDisk(id string) (dir string) {
	s.t.Helper()
	dir = filepath.Join(s.Dir, "state", id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			s.t.Skip("only root may mount a file system to fill it")
		}
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			s.t.Error(err)
		}
	})
	return dir
}

// fill keeps a disk full until the function that it returns is called.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for chunk := make([]byte, 64<<10); ctx.Err() == nil; {
			if _, err := file.Write(chunk); err != nil {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	empty = func() {
		cancel()
		<-done
		if err := errors.Join(file.Close(), os.Remove(path)); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	t.Cleanup(empty)
	return empty
}

// TestFullDisk fills the disk under one of two instances. Its tasks say that there is no space, or it ends with the
// code for that; the other goes on; with space again nothing is lost.
func TestFullDisk(t *testing.T) { underBoth(t, fullDisk) }

func fullDisk(t *testing.T, guarantee string) {
	s := makeScene(t, broker, keys, guarantee, "state: {memtables: 1MiB}") // so that it soon writes
	dir := s.smallDisk("b")
	s.begin("a", "b")
	s.flow(rate)
	hit := s.partitionsOf("b")
	s.watch.Reset()
	empty := fill(t, dir)
	shown := false
	harness.Until(t, limit, "b says that its disk is full", func() bool {
		if !s.processes["b"].Running() {
			return true
		}
		r := harness.Command(t, "status", "--brokers", broker.Address, "--app", s.Name)
		_, failing, _ := strings.Cut(r.Stdout, "CANNOT GO ON")
		shown = strings.Contains(failing, "b  ") && strings.Contains(failing, "no space left on device")
		return shown
	})
	s.goOn(rate)
	empty()
	ended := false
	harness.Until(t, limit, "a and b share the tasks again", func() bool {
		if b := s.processes["b"]; !b.Running() {
			ends(t, b, exitState, "no space left on device", "the local state can no longer be written")
			ended = true
			s.start("b")
		}
		return t.Failed() || s.Status().Balanced(partitions, "a", "b")
	})
	if !shown && !ended {
		t.Error("b has neither said that its disk is full nor ended")
	}
	t.Logf("shown in the status: %v; ended: %v", shown, ended)
	s.goOn(rate)
	s.othersFlowed(hit)
	s.endAfterCrash(hit...)
}
