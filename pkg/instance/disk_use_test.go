package instance

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLookAtDisk(t *testing.T) {
	dir := t.TempDir()
	task := filepath.Join(dir, "tasks", "0_1")
	if err := os.MkdirAll(task, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"a.sst": 1000, "b.sst": 234} {
		if err := os.WriteFile(filepath.Join(task, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := lookAtDisk(dir); err != nil || d.state != 1234 || d.free <= 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := lookAtDisk(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a directory that is not there has a size")
	}
}
