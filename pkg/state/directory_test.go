package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	e := testEngine(t, Config{Dir: dir, FS: vfs.Default})
	db, err := e.Open("0_3", []StoreSpec{{Name: "s", Changelog: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, db, 100)
	if _, err := TakeDirectory(dir, time.Now()); !errors.Is(err, ErrDirInUse) {
		t.Fatalf("under an engine: want ErrDirInUse, got %v", err)
	}
	mustClose(t, e)
	found, err := ListDirectory(dir)
	if err != nil || len(found) != 1 || found[0].Task != "0_3" || found[0].Bytes == 0 {
		t.Fatalf("found %+v, %v", found, err)
	}
	d, err := TakeDirectory(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewEngine(Config{Dir: dir, Logger: quiet(), BallastBytes: -1}); !errors.Is(err, ErrDirInUse) {
		t.Errorf("an engine beside it: want ErrDirInUse, got %v", err)
	}
	if err := errors.Join(d.RemoveTask("0_3"), d.RemoveTask("0_3"), d.RemoveFile("none")); err != nil {
		t.Error(err)
	}
	if err := d.RemoveTask("../.."); err == nil {
		t.Error("a path was taken for a task")
	}
	mustClose(t, d)
	if found, err := ListDirectory(dir); err != nil || len(found) > 0 {
		t.Errorf("left: %+v, %v", found, err)
	}
}

// Nothing is deleted or counted through a link that leads out of the directory.
func TestDirectoryLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	kept := filepath.Join(outside, "0_1", "kept")
	err := errors.Join(os.Mkdir(filepath.Dir(kept), 0o750), os.WriteFile(kept, nil, 0o600), os.Symlink(outside, filepath.Join(dir, tasksDir)))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := ListDirectory(dir); err == nil {
		t.Errorf("listed %+v outside of the directory", found)
	}
	d, err := TakeDirectory(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.RemoveTask("0_1"); err == nil {
		t.Error("no error for a task outside of the directory")
	}
	mustClose(t, d)
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if _, err := ListDirectory(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("want ErrNotExist, got %v", err)
	}
}
