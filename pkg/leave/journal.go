package leave

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// JournalFile is the name of the journal in the state directory.
const JournalFile = "leaving.json"

// Journal keeps the incarnation of this run and, while it drains, the order, in the state directory.
type Journal struct {
	dir         string
	incarnation assign.Incarnation
	resumed     *Order
}

// Record is the content of the journal's file.
type Record struct {
	Version     int                `json:"v"`
	Incarnation assign.Incarnation `json:"incarnation"`
	Order       Order              `json:"order"`
	Left        string             `json:"left,omitempty"` // why the run left; empty: it drains
}

const journalVersion = 1

// OpenJournal settles under which incarnation this process runs: that of a drain which a restart
// interrupted, with one more start counted and its order to be followed on; otherwise a fresh one of the
// given time and random bits. A file that cannot be read is reported, put aside and counts as none.
func OpenJournal(dir string, now time.Time, random uint64, logger *slog.Logger) (*Journal, error) {
	j := &Journal{dir: dir, incarnation: assign.Incarnation{StartMs: now.UnixMilli(), Random: random}}
	rec, err := ReadRecord(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return j, nil
	case errors.Is(err, errUnreadable):
		logger.Warn("the journal of an interrupted leave cannot be read: starting as not leaving",
			"file", j.path(), "kept_as", j.path()+".bad", "error", err)
		if err := os.Rename(j.path(), j.path()+".bad"); err != nil {
			return nil, fmt.Errorf("put the unreadable journal aside: %w", err)
		}
		return j, nil
	case err != nil:
		return nil, err
	case rec.Left != "":
		return j, j.Clear()
	}
	j.incarnation = rec.Incarnation
	j.incarnation.Starts++
	j.resumed = &rec.Order
	return j, j.Save(rec.Order)
}

// Incarnation is that of this run.
func (j *Journal) Incarnation() assign.Incarnation { return j.incarnation }

// Resumed is the order of the drain that a restart interrupted; nil: there was none.
func (j *Journal) Resumed() *Order { return j.resumed }

// Save makes a restart follow the order.
func (j *Journal) Save(o Order) error {
	return j.write(Record{Version: journalVersion, Incarnation: j.incarnation, Order: o})
}

// Clear makes a restart a fresh run.
func (j *Journal) Clear() error {
	if err := os.Remove(j.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the journal of the leave: %w", err)
	}
	return syncDir(j.dir)
}

// Close notes why the run left, for commands that ask later; a restart is a fresh run.
func (j *Journal) Close(o Order, why string) error {
	return j.write(Record{Version: journalVersion, Incarnation: j.incarnation, Order: o, Left: why})
}

func (j *Journal) path() string { return filepath.Join(j.dir, JournalFile) }

// write replaces the file as a whole: after a crash it has the old content or the new.
func (j *Journal) write(rec Record) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the journal of the leave: %w", err)
		}
	}()
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	tmp := j.path() + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(append(data, '\n')); err == nil {
		err = f.Sync()
	}
	if errClose := f.Close(); err == nil {
		err = errClose
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, j.path()); err != nil {
		return err
	}
	return syncDir(j.dir)
}

// errUnreadable is wrapped by ReadRecord when the file is there but makes no sense.
var errUnreadable = errors.New("not a journal of this version")

// ReadRecord reads the journal of a state directory; fs.ErrNotExist when no leave was begun there.
func ReadRecord(dir string) (Record, error) {
	path := filepath.Join(dir, JournalFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return Record{}, fmt.Errorf("read the journal of the leave: %w", err)
	}
	var rec Record
	if err := json.Unmarshal(data, &rec); err != nil {
		return Record{}, fmt.Errorf("%s: %w: %w", path, errUnreadable, err)
	}
	if rec.Version != journalVersion || rec.Incarnation.StartMs <= 0 || rec.Order.Deadline == Default {
		return Record{}, fmt.Errorf("%s: %w", path, errUnreadable)
	}
	return rec, nil
}

// syncDir makes a rename or removal in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync the state directory: %w", err)
	}
	err = d.Sync()
	if errClose := d.Close(); err == nil {
		err = errClose
	}
	if err != nil {
		return fmt.Errorf("sync the state directory: %w", err)
	}
	return nil
}
