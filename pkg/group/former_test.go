package group

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFormerMembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "member")
	open := func(want ...string) *formerIDs {
		t.Helper()
		f, err := openFormer(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.list(); !slices.Equal(got, want) {
			t.Errorf("former members %q, want %q", got, want)
		}
		return f
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f := open()
	do(f.joined("a 1")) // a client id may have spaces
	f = open("a 1")     // killed, started
	do(f.joined("a-2"))
	f = open("a-2", "a 1") // killed before it had removed the first
	do(f.joined("a-3"))
	do(f.removed([]string{"a-2", "a 1"}))
	f = open("a-3")
	do(f.joined("a-4"))
	do(f.joined("a-5")) // expelled, joined anew: a-4 is gone by itself
	do(f.removed([]string{"a-3"}))
	f = open("a-5")
	do(f.joined("a-6"))
	do(f.removed([]string{"a-5"}))
	do(f.removed([]string{"a-6"})) // left
	open()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestFormerMembersAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "member")
	for i := range 3 * maxFormer {
		f, err := openFormer(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.joined(memberID("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := openFormer(path); err != nil || len(f.list()) != maxFormer || f.list()[0] != memberID("a", 3*maxFormer-1) {
		t.Errorf("%d former members, %v", len(f.list()), err)
	}
}

func TestFormerMemberFileCannotBeRead(t *testing.T) {
	if _, err := openFormer(t.TempDir()); err == nil {
		t.Error("a directory was read as the file")
	}
}
