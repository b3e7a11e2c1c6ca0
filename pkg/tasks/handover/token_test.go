package handover_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

func token(gen int32, owner string, last int64, pos ...int64) *handover.Token {
	return &handover.Token{Release: assign.ReleaseID{Generation: gen, Owner: owner}, Positions: pos, LastProcessedUs: last}
}

func TestMetadataText(t *testing.T) {
	for _, tc := range []struct {
		in   handover.Metadata
		text string
	}{
		{handover.Metadata{}, "sw1 %"},
		{handover.Metadata{Committer: "m-1"}, "sw1 m-1"},
		{handover.Metadata{Committer: "two words"}, "sw1 two%20words"},
		{handover.Metadata{Committer: "%"}, "sw1 %25"},
		{handover.Metadata{Committer: "%20"}, "sw1 %2520"},
		{handover.Metadata{Committer: "m-1", After: assign.ReleaseID{Generation: 3, Owner: "m 2"}}, "sw1 m-1 3 m%202"},
		{handover.Metadata{Committer: "m-1", Token: token(7, "m-1", 0)}, "sw1 m-1 7 - 0 m-1"},
		{handover.Metadata{Committer: "m-1", Token: token(7, "", 12, 0, 42)}, "sw1 m-1 7 0,42 12 %"},
		{handover.Metadata{Committer: "m-1", Token: &handover.Token{
			Release: assign.ReleaseID{Generation: 7, Owner: "m-1"}, Positions: []int64{5}, Stores: 0xc0ffee,
		}}, "sw1 m-1 7 5 0 m-1 c0ffee"},
		{
			handover.Metadata{Committer: "héllo %", Token: token(math.MaxInt32, "a b", math.MaxInt64, math.MaxInt64)},
			"sw1 héllo%20%25 2147483647 9223372036854775807 9223372036854775807 a%20b",
		},
	} {
		if got := tc.in.String(); got != tc.text {
			t.Errorf("String of %+v is %q, want %q", tc.in, got, tc.text)
		}
		back, err := handover.ParseMetadata(tc.text)
		if err != nil || !reflect.DeepEqual(back, tc.in) {
			t.Errorf("%q reads as %+v, %v; want %+v", tc.text, back, err, tc.in)
		}
	}
}

func TestForeignMetadata(t *testing.T) {
	for _, s := range []string{
		"", "sw1", "sw2 m-1", "written by somebody else", "sw1 m-1 7", "sw1 m-1 7 - 0", "sw1 m-1 x m-2", "sw1 m-1 7 m-2 3", "sw1 m-1 x - 0 m-1",
		"sw1 m-1 2147483648 - 0 m-1", "sw1 m-1 7 -1 0 m-1", "sw1 m-1 7 1,,2 0 m-1", "sw1 m-1 7 1,x 0 m-1",
		"sw1 m-1 7 - later m-1", "sw1 m-1 7 - 0 m-1 more", "sw1  m-1 7 - 0", "AAAAAA==",
	} {
		got, err := handover.ParseMetadata(s)
		if !errors.Is(err, handover.ErrForeignMetadata) || !reflect.DeepEqual(got, handover.Metadata{}) {
			t.Errorf("%q reads as %+v, %v", s, got, err)
		}
	}
}

// Words that a later build has put behind those of a release are left unread.
func TestMetadataOfALaterBuild(t *testing.T) {
	got, err := handover.ParseMetadata("sw1 m-1 7 5 0 m-1 c0ffee later x=1")
	want := handover.Metadata{Committer: "m-1", Token: token(7, "m-1", 0, 5)}
	want.Token.Stores = 0xc0ffee
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("reads as %+v, %v", got, err)
	}
}

// The broker's default bound is 4096 bytes: a task with many stores must stay below it.
func TestMetadataFitsTheBrokersBound(t *testing.T) {
	id := "an-instance-with-a-rather-long-host-name.example.org-" + strings.Repeat("0", 36)
	pos := make([]int64, 100)
	for i := range pos {
		pos[i] = math.MaxInt64
	}
	if n := len(handover.Metadata{Committer: id, Token: token(math.MaxInt32, id, math.MaxInt64, pos...)}.String()); n > 4096 {
		t.Errorf("metadata of a task with 100 stores takes %d bytes", n)
	}
}

func FuzzParseMetadata(f *testing.F) {
	for _, s := range []string{"", "sw1 m", "sw1 %25%20 3 1,2 5 o%20", "sw1 % -3 - -5 %", "sw1 a 1 0 0 b c", "sw1 a +1 +1 +1 b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := handover.ParseMetadata(s)
		if err != nil {
			if !errors.Is(err, handover.ErrForeignMetadata) {
				t.Fatalf("%q: %v is not ErrForeignMetadata", s, err)
			}
			return
		}
		back, err := handover.ParseMetadata(m.String())
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%q reads as %+v, written as %q, read again as %+v, %v", s, m, m.String(), back, err)
		}
	})
}

func FuzzMetadataRoundTrip(f *testing.F) {
	f.Add("m-1", "", int32(1), int64(0), int64(5), true)
	f.Add("a b%", "%20", int32(-1), int64(9), int64(-5), false)
	f.Fuzz(func(t *testing.T, committer, owner string, gen int32, pos, last int64, release bool) {
		m := handover.Metadata{Committer: committer}
		if !release {
			m.After = assign.ReleaseID{Generation: gen, Owner: owner}
		}
		if release {
			m.Token = token(gen, owner, last, max(pos, 0))
		}
		back, err := handover.ParseMetadata(m.String())
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%+v is written as %q and read as %+v, %v", m, m.String(), back, err)
		}
	})
}
