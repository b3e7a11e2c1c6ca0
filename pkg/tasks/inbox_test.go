package tasks

import "testing"

func TestInboxPausesWhenFullAndResumesWhenItHasRoom(t *testing.T) {
	var b inbox
	paused := 0
	const share = 1000
	put := func(n int) {
		b.put(inputBatch{bytes: n}, share, func() { paused++ })
	}
	put(share)
	if paused != 0 {
		t.Fatal("paused before it was full")
	}
	put(1)
	put(share / 2)
	if paused != 1 {
		t.Fatalf("paused %d times, want once", paused)
	}
	resumed := 0
	resume := func() { resumed++ }
	b.next(resume)
	if resumed != 0 {
		t.Fatal("resumed with more than half of its share waiting")
	}
	b.next(resume)
	b.next(resume)
	if resumed != 1 {
		t.Fatalf("resumed %d times, want once", resumed)
	}
	if _, ok := b.next(resume); ok || !b.empty() {
		t.Fatal("a batch out of nothing")
	}
}

func TestInboxForgetsAPauseWithItsContent(t *testing.T) {
	var b inbox
	b.put(inputBatch{bytes: 2}, 1, func() {})
	b.drop()
	if !b.empty() {
		t.Fatal("not empty")
	}
	paused := false
	b.put(inputBatch{bytes: 2}, 1, func() { paused = true })
	if !paused {
		t.Fatal("a full inbox does not pause again after a drop")
	}
}

// However many sources there are, each may have something; however few, none may have everything.
func TestInboxShare(t *testing.T) {
	for sources, want := range map[int]int{0: inboxMaxBytes, 1: inboxMaxBytes, 8: inboxesBytes / 8, 1000: inboxMinBytes} {
		if got := inboxShare(sources); got != want {
			t.Errorf("%d sources: %d bytes each, want %d", sources, got, want)
		}
	}
}
