package instance

import (
	"context"
	"time"

	"github.com/streamworker/streamworker/pkg/state"
)

// diskInterval is between two looks at the state directory, which may have thousands of files.
const diskInterval = 30 * time.Second

// disk is what state takes, and what is free for it, in bytes.
type disk struct{ state, free int64 }

// watchDisk looks at the state directory now and then, for those who plan how many instances there should be.
func (i *Instance) watchDisk(ctx context.Context) {
	tick := time.NewTicker(diskInterval)
	defer tick.Stop()
	for {
		d, err := lookAtDisk(i.cfg.State.Dir)
		if err != nil {
			i.log.Debug("it is not known how much disk the state takes", "error", err)
		} else {
			i.disk.Store(&d)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func lookAtDisk(dir string) (d disk, err error) {
	databases, err := state.ListDirectory(dir)
	if err != nil {
		return d, err
	}
	for _, t := range databases {
		d.state += t.Bytes
	}
	free, _, err := state.DiskSpace(dir)
	d.free = int64(free)
	return d, err
}
