package harness

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	d, err := NewDisk(filepath.Join(dir, "image"), filepath.Join(dir, "disk"))
	if err != nil {
		t.Skip(err)
	}
	hung := make(chan error, 1)
	go func() { hung <- d.Hang(500 * time.Millisecond) }()
	slowest := time.Duration(0)
	for over := false; !over; {
		select {
		case err := <-hung:
			if err != nil {
				t.Error(err)
			}
			over = true
		default:
		}
		begin := time.Now()
		if err := os.WriteFile(filepath.Join(d.Dir, "file"), []byte("x"), 0o644); err != nil {
			t.Error(err)
		}
		slowest = max(slowest, time.Since(begin))
	}
	if slowest < 100*time.Millisecond {
		t.Errorf("the slowest write took %v though the disk hung for 500 ms", slowest)
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
}
