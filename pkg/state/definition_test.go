package state

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestDefinition opens a store with rows under other definitions than they were written by.
func TestDefinition(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	spec := StoreSpec{Name: "s", Changelog: "app-s-changelog", TopicID: [16]byte{7}, Retention: 10 * time.Hour, Definition: "count; rows v1"}
	with := func(change func(*StoreSpec)) StoreSpec {
		other := spec
		change(&other)
		return other
	}
	for name, test := range map[string]struct {
		first, second StoreSpec
		later         time.Duration
		refused       bool
		want          int64  // position after the second start
		recorded      string // definition after it
	}{
		"the same":                   {first: spec, second: spec, want: 10, recorded: "count; rows v1"},
		"another one":                {first: spec, second: with(func(s *StoreSpec) { s.Definition = "sum; rows v1" }), refused: true, recorded: "count; rows v1"},
		"written without one":        {first: with(func(s *StoreSpec) { s.Definition = "" }), second: spec, want: 10, recorded: "count; rows v1"},
		"read without one":           {first: spec, second: with(func(s *StoreSpec) { s.Definition = "" }), want: 10, recorded: "count; rows v1"},
		"of a changelog made anew":   {first: spec, second: with(func(s *StoreSpec) { s.TopicID[0]++; s.Definition = "sum; rows v1" })},
		"of rows that are too old":   {first: spec, second: with(func(s *StoreSpec) { s.Definition = "sum; rows v1" }), later: 11 * time.Hour},
		"of a store by another name": {first: spec, second: with(func(s *StoreSpec) { s.Name = "t"; s.Definition = "sum; rows v1" }), recorded: "count; rows v1"},
	} {
		t.Run(name, func(t *testing.T) {
			now := start
			cfg := Config{FS: vfs.NewMem(), Now: func() time.Time { return now }}
			e := testEngine(t, cfg)
			db, err := e.Open("0_0", []StoreSpec{test.first})
			if err != nil {
				t.Fatal(err)
			}
			put(t, db, 10)
			mustClose(t, e)
			now = now.Add(test.later)
			e = testEngine(t, cfg)
			if db, err = e.Open("0_0", []StoreSpec{test.second}); test.refused {
				if !errors.Is(err, ErrRedefined) || !strings.Contains(err.Error(), `store s of task 0_0`) || !strings.Contains(err.Error(), "reset --store s") {
					t.Errorf("got %v", err)
				}
			} else if err != nil || db.Checkpoint()[0] != test.want {
				t.Errorf("at %d, want %d (%v)", db.Checkpoint()[0], test.want, err)
			}
			mustClose(t, e)
			e = testEngine(t, cfg)
			recorded := ""
			for _, s := range e.Stored() {
				if s.Task != "0_0" || s.Store != "s" || s.TopicID != spec.TopicID {
					t.Errorf("on disk is %+v", s)
				}
				recorded = s.Definition
			}
			if recorded != test.recorded {
				t.Errorf("recorded %q, want %q", recorded, test.recorded)
			}
		})
	}
}

// TestDefinitionOfANewStart writes rows of a new definition where rows of another one were dropped, and reads them.
func TestDefinitionOfANewStart(t *testing.T) {
	cfg := Config{FS: vfs.NewMem()}
	specs := []StoreSpec{{Name: "s", TopicID: [16]byte{1}, Definition: "old"}}
	for _, now := range []string{"old", "new", "new"} {
		if now == "new" {
			specs = []StoreSpec{{Name: "s", TopicID: [16]byte{2}, Definition: "new"}}
		}
		e := testEngine(t, cfg)
		db, err := e.Open("0_0", specs)
		if err != nil {
			t.Fatal(err)
		}
		put(t, db, 5)
		mustClose(t, e)
	}
	e := testEngine(t, cfg)
	if got := e.Stored(); len(got) != 1 || got[0].Definition != "new" || got[0].TopicID != [16]byte{2} {
		t.Errorf("on disk is %+v", got)
	}
	if _, err := e.Open("0_0", []StoreSpec{{Name: "s", TopicID: [16]byte{2}, Definition: "old"}}); !errors.Is(err, ErrRedefined) {
		t.Errorf("the former definition is taken: %v", err)
	}
}
