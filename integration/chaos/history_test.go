package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// tape writes histories, one record a second.
type tape struct {
	records []Record
	now     time.Time
}

func newTape() *tape { return &tape{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (t *tape) add(process string, what What, r Record) {
	t.now = t.now.Add(time.Second)
	r.At, r.Process, r.What = t.now, process, what
	t.records = append(t.records, r)
}

func (t *tape) receive(process, member string, generation int32) {
	t.add(process, Received, Record{Lease: Lease{member, generation}})
}

func (t *tape) plan(process, member string, generation int32) {
	t.receive(process, member, generation)
	t.add(process, Adopted, Record{Lease: Lease{member, generation}})
}

func (t *tape) phase(process, task, to string) {
	t.add(process, Phase, Record{Tasks: []string{task}, To: to})
}

func (t *tape) commit(process, member string, generation int32, tasks ...string) {
	t.commitSent(t.now.Add(time.Second), process, member, generation, tasks...)
}

func (t *tape) commitSent(sent time.Time, process, member string, generation int32, tasks ...string) {
	t.add(process, Committed, Record{Lease: Lease{member, generation}, Tasks: tasks, Sent: sent})
}

func (t *tape) lose(process string) { t.add(process, Lost, Record{}) }

func (t *tape) end(processes ...string) {
	for _, p := range processes {
		t.add(p, Ended, Record{})
	}
}

// owner lets a#1 run task 0_0 in generation 1, b#1 being there.
func (t *tape) owner() {
	t.plan("a#1", "ma", 1)
	t.plan("b#1", "mb", 1)
	t.phase("a#1", "0_0", "opening")
	t.phase("a#1", "0_0", "running")
	t.commit("a#1", "ma", 1, "0_0")
}

// handover moves 0_0 from a to b in generation 2.
func (t *tape) handover() {
	t.plan("b#1", "mb", 2)
	t.phase("b#1", "0_0", "taking")
	t.plan("a#1", "ma", 2)
	t.phase("a#1", "0_0", "releasing")
	t.commit("a#1", "ma", 2, "0_0")
	t.phase("b#1", "0_0", "running")
	t.phase("a#1", "0_0", "released")
	t.commit("b#1", "mb", 2, "0_0")
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name string
		tell func(t *tape)
		want []string // parts of what is found, in order; none: the history is right
	}{
		{name: "a handover", tell: func(t *tape) {
			t.owner()
			t.handover()
			t.end("a#1", "b#1")
		}},
		{name: "a commit that a plan overtakes", tell: func(t *tape) {
			t.owner()
			sent := t.now
			t.plan("a#1", "ma", 2)
			t.commitSent(sent, "a#1", "ma", 1, "0_0")
			t.end("a#1", "b#1")
		}},
		{name: "a paused process whose lease a later plan has ended", tell: func(t *tape) {
			t.owner()
			t.plan("b#1", "mb", 2)
			t.phase("b#1", "0_0", "running")
			t.commit("b#1", "mb", 2, "0_0")
			t.lose("a#1")
			t.phase("a#1", "0_0", "idle")
			t.plan("a#1", "ma2", 3)
			t.end("a#1", "b#1")
		}},
		{name: "a process that stops, its member removed", tell: func(t *tape) {
			t.owner()
			t.plan("b#1", "mb", 2)
			t.phase("b#1", "0_0", "running")
			t.end("a#1", "b#1")
		}},
		{name: "killed, and the task run elsewhere in a later generation", tell: func(t *tape) {
			t.owner()
			t.end("a#1")
			t.plan("b#1", "mb", 2)
			t.phase("b#1", "0_0", "running")
			t.end("b#1")
		}},
		{name: "back to the former owner in a later generation", tell: func(t *tape) {
			t.owner()
			t.handover()
			t.plan("a#1", "ma", 3)
			t.plan("b#1", "mb", 3)
			t.phase("b#1", "0_0", "releasing")
			t.commit("b#1", "mb", 3, "0_0")
			t.phase("a#1", "0_0", "running")
			t.commit("a#1", "ma", 3, "0_0")
			t.end("a#1", "b#1")
		}},

		{name: "two run a task in one generation", tell: func(t *tape) {
			t.owner()
			t.phase("b#1", "0_0", "running")
			t.end("a#1", "b#1")
		}, want: []string{"under one generation"}},
		{name: "the taker runs before the owner has released", tell: func(t *tape) {
			t.owner()
			t.plan("b#1", "mb", 2)
			t.phase("b#1", "0_0", "running")
			t.plan("a#1", "ma", 2)
			t.phase("a#1", "0_0", "releasing")
			t.end("a#1", "b#1")
		}, want: []string{"no plan had ended the older lease"}},
		{name: "an owner that is a member all the time runs on in a later generation", tell: func(t *tape) {
			t.owner()
			t.plan("b#1", "mb", 2)
			t.phase("b#1", "0_0", "running")
			t.plan("a#1", "ma", 3)
			t.end("a#1", "b#1")
		}, want: []string{"no plan had ended the older lease"}},
		{name: "a late opener: the newer lease is the other's", tell: func(t *tape) {
			t.plan("a#1", "ma", 1)
			t.plan("b#1", "mb", 2)
			t.phase("b#1", "0_0", "running")
			t.phase("a#1", "0_0", "running")
			t.plan("a#1", "ma", 3)
			t.end("a#1", "b#1")
		}, want: []string{"no plan had ended the older lease"}},
		{name: "a process never finds out", tell: func(t *tape) {
			t.owner()
			t.plan("b#1", "mb", 2)
			t.phase("b#1", "0_0", "running")
			t.now = t.now.Add(time.Hour)
			t.lose("a#1")
			t.phase("a#1", "0_0", "idle")
			t.end("a#1", "b#1")
		}, want: []string{"too long not to notice"}},
		{name: "a process runs a task after its lease was lost", tell: func(t *tape) {
			t.owner()
			t.lose("a#1")
			t.plan("b#1", "mb", 2)
			t.phase("b#1", "0_0", "running")
			t.end("a#1", "b#1")
		}, want: []string{"one of them held no lease"}},
		{name: "a commit under the lease before", tell: func(t *tape) {
			t.owner()
			t.plan("a#1", "ma", 2)
			t.commit("a#1", "ma", 1, "0_0")
			t.end("a#1", "b#1")
		}, want: []string{"when it was ma in generation 2"}},
		{name: "a commit in another's name", tell: func(t *tape) {
			t.owner()
			t.commit("a#1", "mb", 1, "0_0")
			t.end("a#1", "b#1")
		}, want: []string{"when it was ma in generation 1"}},
		{name: "a commit after the lease was lost", tell: func(t *tape) {
			t.owner()
			t.lose("a#1")
			t.commit("a#1", "ma", 1, "0_0")
			t.end("a#1", "b#1")
		}, want: []string{"when it held no lease"}},
		{name: "a commit of a task that another runs", tell: func(t *tape) {
			t.owner()
			t.commit("b#1", "mb", 1, "0_0")
			t.end("a#1", "b#1")
		}, want: []string{`when its phase was ""`}},
		{name: "a commit after the release", tell: func(t *tape) {
			t.owner()
			t.handover()
			t.commit("a#1", "ma", 2, "0_0")
			t.end("a#1", "b#1")
		}, want: []string{"after b#1 had", `when its phase was "released"`}},
		{name: "generations go back", tell: func(t *tape) {
			t.plan("a#1", "ma", 3)
			t.plan("a#1", "ma", 2)
			t.end("a#1")
		}, want: []string{"received a plan of generation 2 after one of 3"}},
		{name: "the plan once more, after a join that made no round", tell: func(t *tape) {
			t.plan("a#1", "ma", 3)
			t.plan("a#1", "ma", 3)
			t.end("a#1")
		}},
		{name: "two members in one generation", tell: func(t *tape) {
			t.plan("a#1", "ma", 3)
			t.plan("a#1", "mb", 3)
			t.end("a#1")
		}, want: []string{"received a plan of generation 3 after one of 3"}},
		{name: "a process without an end", tell: func(t *tape) {
			t.owner()
			t.end("a#1")
		}, want: []string{"does not tell the end of b#1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newTape()
			test.tell(h)
			slices.Reverse(h.records) // the order of time counts, not that of the logs
			found := Check(h.records, time.Minute)
			if len(found) != len(test.want) {
				t.Fatalf("found %q, want %q", found, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(found[i], want) {
					t.Errorf("found %q, want %q", found[i], want)
				}
			}
		})
	}
}

func TestRecords(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	event := func(msg string, fields map[string]any) harness.Event {
		return harness.Event{Time: at, Msg: msg, Fields: fields}
	}
	got := Records("a#1", []harness.Event{
		event("plan received", map[string]any{"member": "m", "generation": 2.0}),
		event("adopted a plan", map[string]any{"member": "m", "generation": 2.0}),
		event("running", nil),
		event("task changed phase", map[string]any{"task": "0_1", "from": "opening", "to": "running", "member": "m", "generation": 2.0}),
		event("committed", map[string]any{"tasks": "0_1,0_2", "member": "m", "generation": 2.0, "sent": "2026-01-02T03:04:04.5Z"}),
		event("lost the group: dropping owned tasks until the next plan", nil),
	})
	l := Lease{"m", 2}
	want := []Record{
		{At: at, Process: "a#1", What: Received, Lease: l},
		{At: at, Process: "a#1", What: Adopted, Lease: l},
		{At: at, Process: "a#1", What: Phase, Lease: l, Tasks: []string{"0_1"}, To: "running"},
		{At: at, Process: "a#1", What: Committed, Lease: l, Tasks: []string{"0_1", "0_2"}, Sent: at.Add(-500 * time.Millisecond)},
		{At: at, Process: "a#1", What: Lost},
	}
	if !slices.EqualFunc(got, want, func(a, b Record) bool {
		return a.At.Equal(b.At) && a.Process == b.Process && a.What == b.What && a.Lease == b.Lease && slices.Equal(a.Tasks, b.Tasks) && a.To == b.To && a.Sent.Equal(b.Sent)
	}) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
