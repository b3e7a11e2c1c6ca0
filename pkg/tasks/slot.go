package tasks

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// mode is what the manager has made of an open task.
type mode uint8

const (
	absent    mode = iota // no task is open
	replaying             // replays its changelogs
	restored              // has its state and its processor, but no input
	running               // processes
	stopping              // told to stop for its release; flushing
	halted                // stopped and flushed, kept until the release is acknowledged
)

// slot is the manager's side of one task: what runs, and for which order of the machine.
type slot struct {
	id   assign.TaskID
	sub  *Subtopology
	task *task
	mode mode

	begun   bool           // work for the phase below has begun
	epoch   uint64         // of the machine's order that the work is for
	phase   handover.Phase // likewise
	seen    handover.Phase // last phase told to Events
	closing bool
	checks  int // checks in a row in which a learner was within the acceptable lag

	opening committed // what the task is opened at, or what an owner found that was told to release again
	release *release
	taking  assign.ReleaseID // the release that it waited for last
	ordered time.Time        // when the release was ordered

	committed    bool // stopped, and all that it did is committed in a transaction
	freezing     bool
	commit       *frozen // flushed, to be committed or on its way
	refusedUnder handover.Lease
	commitAfter  time.Time // the earliest at which the same lease is tried again

	processed []int64                  // committed offsets, in the order of the sources
	purged    map[TopicPartition]int64 // of repartition topics: the offset up to which records are deleted

	failures int // in a row
	err      error
	retryAt  time.Time
	notOpen  failure   // why it could not be opened yet
	ahead    bool      // input is read though the task waits for its token
	well     time.Time // since when the task does what it is to do; zero: it does not yet
	input    inputTrouble
}

// release is what the commit of a release says.
type release struct {
	offsets   []int64
	positions []int64
	last      time.Time
}

// reconcileAll brings every task in line with the machine.
func (m *Manager) reconcileAll() {
	for _, t := range m.machine.Tasks() {
		if m.slots[t] == nil {
			m.slots[t] = &slot{id: t, sub: m.cfg.subtopology(t), purged: map[TopicPartition]int64{}}
		}
	}
	for _, t := range sortedTasks(m.slots) {
		m.reconcile(m.slots[t])
	}
}

func sortedTasks[V any](m map[assign.TaskID]V) []assign.TaskID {
	return slices.SortedFunc(maps.Keys(m), assign.TaskID.Compare)
}

// reconcile begins what the machine says of a task, unless that is under way. A late answer may come with a
// slot that was forgotten meanwhile: its task is another slot's business.
func (m *Manager) reconcile(s *slot) {
	if m.slots[s.id] != s {
		return
	}
	st := m.machine.Task(s.id)
	m.notePhase(s, st.Phase)
	if s.closing || s.begun && s.epoch == st.Epoch && s.phase == st.Phase || m.stopping {
		return
	}
	if s.epoch != st.Epoch {
		m.opener.forget(s.id)
		m.endReadAhead(s)
		s.ordered, s.notOpen = time.Now(), failure{}
		if s.mode == replaying {
			t := s.task
			t.box.post(func() { t.restoreTo(nil, nil) })
		}
	}
	opens := st.Phase.Copies() || st.Phase == handover.Taking || st.Phase == handover.Opening
	if opens && s.task == nil && time.Now().Before(s.retryAt) {
		s.begun = false // check comes back to it
		return
	}
	s.begun, s.epoch, s.phase = true, st.Epoch, st.Phase
	switch st.Phase {
	case handover.Idle:
		m.endTask(s, false)
	case handover.Released:
		m.endTask(s, true)
	case handover.Learning, handover.Standby:
		m.ensureCopy(s)
	case handover.Taking, handover.Opening:
		if m.ensureCopy(s) {
			m.beginOpening(s, st)
		}
	case handover.Looking:
		m.beginLooking(s)
	case handover.Releasing:
		m.beginRelease(s)
	case handover.Running, handover.Refused, handover.Unanswered:
		// Nothing to begin: the plan or the answer to come decides.
	}
}

func (m *Manager) notePhase(s *slot, p handover.Phase) {
	if s.seen == p {
		return
	}
	lease, _ := m.machine.Lease()
	m.cfg.Events.PhaseChanged(PhaseInfo{
		Task: s.id, From: s.seen, To: p, Member: lease.Member, Generation: lease.Generation, Release: m.machine.Task(s.id).Release,
	})
	s.seen = p
}

// ensureCopy makes sure that the task is open and replays its changelogs. False: it has to be closed first.
func (m *Manager) ensureCopy(s *slot) bool {
	switch s.mode {
	case replaying:
		return true
	case absent:
		t := newTask(s.id, s.sub, m.env)
		t.failed = s.failures > 0
		t.careful = t.failed && m.txn == nil
		s.task, s.mode, s.checks, s.well = t, replaying, 0, time.Time{}
		if m.machine.Task(s.id).Phase.Copies() {
			t.ahead = true
			s.well = time.Now()
		}
		go t.run()
		t.box.post(func() {
			t.open(func(err error) { m.env.failed(t, err) })
		})
		return true
	default:
		// It processed, or was about to: its memory is not to be used again.
		m.closeTask(s, false)
		return false
	}
}

// endTask closes the task of a slot that is to hold nothing, and forgets the slot.
func (m *Manager) endTask(s *slot, clean bool) {
	if s.task != nil {
		m.closeTask(s, clean)
		return
	}
	if m.machine.Task(s.id).Phase == handover.Idle {
		delete(m.slots, s.id)
	}
}

// closeTask closes the task; reconcile goes on when it is closed. A clean close keeps what was committed
// but not yet written to the store, a dirty one drops it: it is replayed.
func (m *Manager) closeTask(s *slot, clean bool) {
	t := s.task
	if s.mode == running || s.mode == stopping || s.mode == halted {
		m.env.input.remove(t, s.sub.sources(s.id))
	}
	m.opener.forget(s.id)
	m.endReadAhead(s)
	s.input, s.notOpen = inputTrouble{}, failure{}
	wrote := s.mode == running || s.mode == stopping || s.mode == halted
	s.closing, s.begun = true, false
	s.freezing, s.committed, s.commit, s.release, s.processed = false, false, nil, nil, nil
	if !clean {
		t.cancel() // it may be waiting for room in the producer
	}
	t.box.post(func() {
		if clean {
			if err := t.applyUntil(nil); err != nil {
				t.log.Warn("committed changes could not be written to the store; they will be replayed", "error", err)
				clean = false
			}
		}
		t.close(clean, func(err error) {
			m.box.post(func() { m.closed(s, err) })
		})
	})
	if m.txn != nil && wrote && !clean {
		m.abortTransaction(fmt.Errorf("task %s is closed with work that is not committed", s.id))
	}
}

func (m *Manager) closed(s *slot, err error) {
	if err != nil {
		m.log.Error("closing the state of a task failed; it is checked when it is opened again", "task", s.id.String(), "error", err)
	}
	s.task, s.mode, s.closing, s.begun = nil, absent, false, false
	m.reconcile(s)
}

// failed closes a task that cannot go on; it is opened anew after a while.
func (m *Manager) failed(t *task, err error) {
	s := m.slots[t.id]
	if s == nil || s.task != t || s.closing {
		return
	}
	m.blame(s, err)
	m.machine.Failed(s.id, s.epoch)
	m.closeTask(s, false)
}

// blame notes that a task has failed: before it is opened anew it waits.
func (m *Manager) blame(s *slot, err error) {
	s.failures++
	s.err, s.well = err, time.Time{}
	wait := backoff(s.failures)
	s.retryAt = time.Now().Add(wait)
	m.totals.failures.Add(1)
	m.cfg.Events.TaskFailed(FailureInfo{Task: s.id, Err: err, Failures: s.failures, Retry: wait})
}
