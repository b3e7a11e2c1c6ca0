package tasks

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// seen is the count of a key as a reader sees it.
func (r *rig) seen(key string, stale bool) (count int64, role Role, err error) {
	v, err := r.m.View(id(0), stale)
	if err != nil {
		return 0, "", err
	}
	stored, ok, err := v.Applied("counts", []byte(key))
	if ok {
		count = int64(binary.BigEndian.Uint64(stored[8:]))
	}
	return count, v.Role, err
}

func (r *rig) awaitSeen(key string, count int64, role Role, stale bool) {
	r.t.Helper()
	r.await("a reader sees the count", func() bool {
		n, got, err := r.seen(key, stale)
		return err == nil && n == count && got == role
	})
}

func (r *rig) refused(stale bool, want error) {
	r.t.Helper()
	if _, _, err := r.seen("0/0", stale); !errors.Is(err, want) {
		r.t.Errorf("a reader gets %v, want %v", err, want)
	}
}

// A reader sees what is committed, from whoever runs the task, and from copies only if it says so.
func TestView(t *testing.T) {
	for name, change := range map[string]func(*Config){"at least once": func(*Config) {}, "exactly once": exactlyOnce} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, countStreams, 1, change).start()
			r.refused(true, ErrNotHere)
			r.send(0, 30, 3)
			r.plan(1, own(id(0)))
			r.awaitCommitted(0, 30)
			r.awaitSeen("0/0", 10, Active, false)

			r.group.expired.Store(true)
			r.refused(false, ErrMoving)
			if n, role, err := r.seen("0/0", true); n != 10 || role != Learner || err != nil {
				t.Errorf("without a lease: %d of a %s, %v", n, role, err)
			}
			r.group.expired.Store(false)
			r.awaitSeen("0/0", 10, Active, false)

			r.plan(2, releaseOf(id(0), 2))
			if _, _, err := r.seen("0/0", false); err == nil {
				t.Error("a task that is being released is read as active")
			}
			r.awaitPhase(id(0), handover.Released)
			r.await("the task is gone", func() bool { _, _, err := r.seen("0/0", true); return errors.Is(err, ErrNotHere) })
			r.plan(3, assign.MemberPlan{Learn: []assign.TaskID{id(0)}})
			r.awaitSeen("0/0", 10, Learner, true)
			r.refused(false, ErrNotHere)
			r.plan(4, assign.MemberPlan{Standby: []assign.TaskID{id(0)}})
			r.awaitSeen("0/0", 10, Standby, true)
		})
	}
}

// What is processed and not committed is not shown.
func TestViewOfTheUncommitted(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	r.send(0, 10, 1)
	r.plan(1, own(id(0)))
	r.awaitCommitted(0, 10)
	r.awaitSeen("0/0", 10, Active, false)
	r.ledger.decide(func(commitCall) (handover.Outcome, bool) { return handover.Unknown, false })
	r.send(0, 10, 1)
	r.await("all is processed", func() bool { return r.m.Totals().RecordsIn == 20 })
	r.await("a commit got no answer", func() bool { return r.m.Totals().CommitsUnanswered > 0 })
	if n, _, err := r.seen("0/0", true); n != 10 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	r.ledger.decide(nil)
	r.plan(2, own(id(0)))
	r.awaitSeen("0/0", 20, Active, false)
}

func TestPartitionOf(t *testing.T) {
	// Hashes as in the tests of Kafka's own clients: murmur2("21") = -973932308, murmur2("foobar") = -790332482, murmur2("a-little-bit-long-string") = -985981536.
	for key, hash := range map[string]int32{"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536} {
		if got, want := PartitionOf([]byte(key), 7), (hash&0x7fffffff)%7; got != want {
			t.Errorf("%q of seven partitions: %d, want %d", key, got, want)
		}
	}
}
