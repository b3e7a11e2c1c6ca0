package tasks

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestFlushIsDoneOnceSealedAndAnswered(t *testing.T) {
	for _, tc := range []struct {
		name      string
		answers   []error // one record each, before the seal
		late      []error // after it
		wantError bool
	}{
		{name: "nothing was produced"},
		{name: "all answered before the seal", answers: []error{nil, nil}},
		{name: "answers come after the seal", answers: []error{nil}, late: []error{nil, nil}},
		{name: "one of many fails", answers: []error{nil, errors.New("boom")}, late: []error{nil}, wantError: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFlush(1)
			f.pending.Add(int64(len(tc.answers) + len(tc.late)))
			for _, err := range tc.answers {
				f.promise(new(kgo.Record), err)
			}
			done := 0
			f.seal(func() { done++ })
			if want := len(tc.late) == 0; (done == 1) != want {
				t.Fatalf("done %d times at the seal", done)
			}
			for i, err := range tc.late {
				if done != 0 {
					t.Fatalf("done before answer %d", i)
				}
				f.promise(new(kgo.Record), err)
			}
			if done != 1 {
				t.Fatalf("done %d times", done)
			}
			if (f.err() != nil) != tc.wantError {
				t.Fatalf("err is %v", f.err())
			}
		})
	}
}

func TestFlushKnowsHowFarTheChangelogsReach(t *testing.T) {
	f := newFlush(2)
	f.pending.Add(3)
	f.changelogPromise(0)(&kgo.Record{Offset: 6}, nil)
	f.changelogPromise(0)(&kgo.Record{Offset: 7}, nil)
	f.changelogPromise(1)(&kgo.Record{Offset: 99}, errors.New("lost"))
	f.seal(func() {})
	if a, b := f.next[0].Load(), f.next[1].Load(); a != 8 || b != 0 {
		t.Fatalf("positions %d and %d, want 8 and, for what was not written, 0", a, b)
	}
}

// A broker that has a batch twice may not know any more where the first one is. The client takes that for written.
func TestChangeWithoutAnOffsetIsNoSuccess(t *testing.T) {
	f := newFlush(1)
	f.pending.Add(2)
	f.changelogPromise(0)(&kgo.Record{Offset: 7}, nil)
	f.changelogPromise(0)(&kgo.Record{Offset: -1}, nil)
	f.seal(func() {})
	if f.err() == nil || f.next[0].Load() != 8 {
		t.Fatalf("error %v, next offset %d", f.err(), f.next[0].Load())
	}
}
