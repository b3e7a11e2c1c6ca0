package tasks

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestInboxPausesWhenFullAndResumesWhenItHasRoom(t *testing.T) {
	var b inbox
	paused := 0
	put := func(n int) {
		b.put(inputBatch{records: make([]*kgo.Record, n)}, func() { paused++ })
	}
	put(inboxHigh)
	if paused != 0 {
		t.Fatal("paused before it was full")
	}
	put(1)
	put(inboxLow)
	if paused != 1 {
		t.Fatalf("paused %d times, want once", paused)
	}
	resumed := 0
	resume := func() { resumed++ }
	b.next(resume)
	if resumed != 0 {
		t.Fatal("resumed with more than the low mark waiting")
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
	b.put(inputBatch{records: make([]*kgo.Record, inboxHigh+1)}, func() {})
	b.drop()
	if !b.empty() {
		t.Fatal("not empty")
	}
	paused := false
	b.put(inputBatch{records: make([]*kgo.Record, inboxHigh+1)}, func() { paused = true })
	if !paused {
		t.Fatal("a full inbox does not pause again after a drop")
	}
}
