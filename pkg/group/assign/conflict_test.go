package assign

import (
	"strings"
	"testing"
)

func TestConflictsNameTheMembersWithAnotherConfiguration(t *testing.T) {
	member := func(id string, hash uint64) Member {
		return Member{ID: id, Report: Report{Instance: "i-" + id, ConfigHash: hash}}
	}
	if got := Conflicts(Input{Members: []Member{member("b", 7), member("a", 7)}}); len(got) != 0 {
		t.Fatalf("equal configurations: %v", got)
	}
	got := Conflicts(Input{Members: []Member{member("c", 8), member("b", 7), member("a", 7), member("d", 9)}})
	if len(got) != 1 || got[0].Kind != OtherConfig || got[0].Kept != "a" || got[0].Refused != "c" {
		t.Fatalf("got %+v", got)
	}
	if s := got[0].String(); !strings.Contains(s, "members a and c run different configurations") {
		t.Fatalf("says %q", s)
	}
	if Conflicts(Input{}) != nil {
		t.Fatal("conflicts in an empty group")
	}
}
