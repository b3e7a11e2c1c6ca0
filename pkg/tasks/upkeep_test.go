package tasks

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

const rekeyedStreams = `
- name: s
  from: {topic: in}
  steps:
    - rekey: value
    - count: {store: counts}
    - to: {topic: out, value: int}
`

// purged is how far a partition was purged.
func (l *countedLogs) purgedTo(tp TopicPartition) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.purged[tp]
}

// What was processed of a repartition topic is purged, up to what is committed; an input topic never is.
func TestPurgeOfRepartitionTopics(t *testing.T) {
	r := newRig(t, rekeyedStreams, 1).start()
	second := assign.TaskID{Subtopology: 1}
	r.plan(1, own(id(0), second))
	r.awaitPhase(second, handover.Running)
	internal := r.cfg.Subtopologies[1].sources(second)[0]
	r.send(0, 10, 2)
	r.awaitCommitted(0, 10)
	r.await("the second part has committed", func() bool { return r.ledger.offset(internal.Topic, 0) == 10 })
	var asked int
	var mu sync.Mutex
	fail := errors.New("not now")
	r.logs.intercept(func(what string, _ []TopicPartition) error {
		mu.Lock()
		defer mu.Unlock()
		if what == "purge" {
			if asked++; asked == 1 {
				return fail
			}
		}
		return nil
	})
	r.await("it is purged at the second attempt", func() bool {
		r.inside(r.m.purge)
		return r.logs.purgedTo(internal) == 10
	})
	r.await("the answer is noted", func() (idle bool) { r.inside(func() { idle = !r.m.upkept.purging }); return idle })
	r.inside(r.m.purge) // nothing is new
	r.logs.mu.Lock()
	defer r.logs.mu.Unlock()
	if len(r.logs.purged) != 1 || asked != 2 {
		t.Fatalf("purged %v in %d requests", r.logs.purged, asked)
	}
}

func TestStaleStateIsRemoved(t *testing.T) {
	const keep = time.Hour
	r := newRig(t, countStreams, 2, func(c *Config) { c.Subtopologies[0].Stores[0].Retention = keep }).start()
	r.send(0, 10, 2)
	r.send(1, 10, 2)
	r.plan(1, own(id(0), id(1)))
	r.awaitCommitted(0, 10)
	r.awaitCommitted(1, 10)
	r.plan(2, assign.MemberPlan{Own: []assign.TaskID{id(0)}, Release: releaseOf(id(1), 2).Release})
	r.awaitPhase(id(1), handover.Released)
	r.plan(3, own(id(0)))
	local := func() []state.LocalTask { return r.cfg.Engine.Local() }
	r.await("the state is closed", func() bool { return len(local()) == 1 })
	r.inside(func() { r.m.removeStale(time.Now().Add(keep / 2)) })
	if len(local()) != 1 {
		t.Fatal("state that can still be used is removed")
	}
	r.inside(func() { r.m.removeStale(time.Now().Add(2 * keep)) })
	if len(local()) != 0 {
		t.Fatal("state that is too old is kept")
	}
	if _, p := r.look(id(0)); p != handover.Running {
		t.Fatalf("the task that runs is %s", p)
	}
}

// lockedBuffer is a log that a test reads while others write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestLongRestoresSayHowFarTheyAre(t *testing.T) {
	var out lockedBuffer
	r := newRig(t, countStreams, 1, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&out, nil)) }).start()
	activate := r.holdActivation(id(0), own(id(0)))
	r.inside(func() { r.m.logRestores(time.Now()) })
	if strings.Contains(out.String(), "msg=restoring") {
		t.Error("a restore that has just begun is reported")
	}
	r.inside(func() { r.m.logRestores(time.Now().Add(2 * progressInterval)) })
	if !strings.Contains(out.String(), "msg=restoring task=0_0") {
		t.Errorf("a long restore is not reported: %s", out.String())
	}
	activate()
	r.awaitPhase(id(0), handover.Running)
}

// The state of a task is held by somebody else: each attempt to open it waits longer, and none is lost.
func TestFailedTaskBacksOff(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	db, err := r.cfg.Engine.Open("0_0", r.cfg.Subtopologies[0].Stores)
	if err != nil {
		t.Fatal(err)
	}
	r.plan(1, own(id(0)))
	r.await("three attempts fail", func() bool { return r.statusOf(0).Failures >= 3 })
	r.events.Lock()
	for i, f := range r.events.failed {
		if f.Task != id(0) || f.Failures != i+1 || f.Retry != backoff(i+1) || !errors.Is(f.Err, state.ErrOpen) {
			t.Errorf("failure %d: %+v", i+1, f)
		}
	}
	r.events.Unlock()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r.awaitPhase(id(0), handover.Running)
	r.send(0, 10, 2)
	r.awaitCommitted(0, 10)
	r.await("the failures are forgotten", func() bool { st := r.statusOf(0); return st.Err == nil && st.Failures == 0 })
}

// A record that cannot be processed has written to the store, and that was taken back. The state that is there is up to date all the same,
// and upkeep takes nothing away that the next commit counts on.
func TestUpkeepOfATaskThatStandsStill(t *testing.T) {
	r := newRig(t, strings.Replace(countStreams, "- to:", "- filter: value < 6 or int(key) > 0\n    - to:", 1), 1).start()
	r.plan(1, own(id(0)))
	r.send(0, 5, 1)
	r.awaitCommitted(0, 5)
	r.send(0, 1, 1)
	failures := func() int { return r.statusOf(0).Failures }
	r.await("the record fails", func() bool { return failures() > 0 })
	before := 0
	r.inside(func() {
		task := r.m.slots[id(0)].task
		done := make(chan struct{})
		task.box.post(func() { task.markCurrent(); close(done) })
		<-done
		before = task.stats.stalled.Load().failures
	})
	r.await("it fails once more", func() bool { return failures() > before })
	r.plan(2, releaseOf(id(0), 2))
	r.awaitPhase(id(0), handover.Released)
	r.await("the state is closed", func() bool { return len(r.cfg.Engine.Local()) == 1 })
	ends, err := r.adm.ListEndOffsets(t.Context(), "app-counts-changelog")
	if err != nil {
		t.Fatal(err)
	}
	if end, _ := ends.Lookup("app-counts-changelog", 0); r.cfg.Engine.Local()[0].Position != end.Offset {
		t.Errorf("the state that is kept is at %d, the changelog ends at %d", r.cfg.Engine.Local()[0].Position, end.Offset)
	}
}
