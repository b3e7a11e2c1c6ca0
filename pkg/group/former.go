package group

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// formerIDs keeps the member ids of an instance in a file, one a line, so that a restart can remove its
// former self from the group: the coordinator would wait for it until its session is over. There may be
// several if a restart was itself killed before it had removed the one before.
//
// An id that is wrongly in the file costs nothing: the group does not know it. One that is missing
// costs time only.
type formerIDs struct {
	path string // empty: keep nothing

	mu      sync.Mutex
	current string
	former  []string
}

// maxFormer bounds the list; older ids have expired long since.
const maxFormer = 16

// openFormer reads the file; that there is none is no error.
func openFormer(path string) (*formerIDs, error) {
	f := &formerIDs{path: path}
	if path == "" {
		return f, nil
	}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("former member ids: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if id := strings.TrimSpace(line); id != "" {
			f.former = append(f.former, id)
		}
	}
	if len(f.former) > maxFormer {
		f.former = f.former[:maxFormer]
	}
	return f, nil
}

// list returns the ids that are to be removed.
func (f *formerIDs) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.former)
}

// joined notes our member id.
func (f *formerIDs) joined(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == f.current {
		return nil
	}
	f.current = id
	return f.save()
}

// removed notes that the group does not have these ids any more.
func (f *formerIDs) removed(ids []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.former = slices.DeleteFunc(f.former, func(id string) bool { return slices.Contains(ids, id) })
	if slices.Contains(ids, f.current) {
		f.current = ""
	}
	return f.save()
}

// save replaces the file as a whole. f.mu must be held. It is not synced to the disk: a machine that
// crashes takes longer to restart than a session lasts.
func (f *formerIDs) save() error {
	if f.path == "" {
		return nil
	}
	ids := slices.Clone(f.former)
	if f.current != "" {
		ids = append([]string{f.current}, ids...)
	}
	if len(ids) == 0 {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("former member ids: %w", err)
		}
		return nil
	}
	tmp := f.path + ".tmp"
	err := os.WriteFile(tmp, []byte(strings.Join(ids, "\n")+"\n"), 0o644)
	if err == nil {
		err = os.Rename(tmp, f.path)
	}
	if err != nil {
		return fmt.Errorf("former member ids: %w", err)
	}
	return nil
}
