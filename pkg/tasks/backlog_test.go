package tasks

import (
	"context"
	"testing"
	"time"
)

func TestBacklogWaitsForRoom(t *testing.T) {
	b := newBacklog()
	b.await(t.Context())
	b.add(backlogBytes + 2)
	waiting, stop := context.WithCancel(t.Context())
	stop()
	b.await(waiting) // a change of what is consumed does not wait

	began := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		close(began)
		b.await(t.Context())
		close(ended)
	}()
	<-began
	b.add(-1)
	b.add(-1)
	<-ended
}

// What tasks hold that cannot go on does not keep the others from their input.
func TestBacklogDoesNotWaitForEver(t *testing.T) {
	b := newBacklog()
	b.add(backlogBytes + 1)
	began := time.Now()
	b.await(t.Context())
	if time.Since(began) < backlogWait {
		t.Error("it has not waited at all")
	}
}

// Each way out of an inbox is counted.
func TestBacklogIsWhatInboxesHold(t *testing.T) {
	total := newBacklog()
	boxes := []inbox{{total: total}, {total: total}}
	for i := range boxes {
		for source := range 3 {
			boxes[i].put(inputBatch{source: source, bytes: 100}, 1000, func() {})
		}
	}
	want := func(n int64) {
		t.Helper()
		if got := total.bytes.Load(); got != n {
			t.Fatalf("%d bytes, want %d", got, n)
		}
	}
	want(600)
	boxes[0].next(func() {})
	boxes[0].nextOf(2, func() {})
	want(600) // at hand
	boxes[0].done(150)
	want(450)
	boxes[1].next(func() {})
	boxes[1].drop()
	want(150)
	boxes[1].done(100) // of what was dropped
	want(150)
	boxes[0].next(func() {})
	boxes[0].done(150)
	want(0)
}
