package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Disk is a small file system of its own, which can hang. It needs the rights of root.
type Disk struct {
	Dir string // where it is mounted
}

// NewDisk makes a file system in an image file and mounts it on dir.
func NewDisk(image, dir string) (*Disk, error) {
	file, err := os.Create(image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(file.Truncate(1<<30), file.Close(), os.MkdirAll(dir, 0o755)); err != nil { // sparse
		return nil, err
	}
	if err := command("mkfs.ext4", "-q", image); err != nil {
		return nil, err
	}
	if err := command("mount", "-o", "loop", image, dir); err != nil {
		return nil, err
	}
	return &Disk{Dir: dir}, nil
}

// Hang lets nothing be written for a while: those who try wait. Hang returns when it is over.
func (d *Disk) Hang(length time.Duration) error {
	// Another process ends it even if this one dies meanwhile.
	script := fmt.Sprintf("fsfreeze -f %s && sleep %.3f; fsfreeze -u %s", d.Dir, length.Seconds(), d.Dir)
	return command("sh", "-c", script)
}

// Remove unmounts it; its content is gone.
func (d *Disk) Remove() error { return command("umount", d.Dir) }

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
