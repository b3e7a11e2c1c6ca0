package handover_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// TestScripts runs the dialogues in testdata: what one instance is told and what it learns, and what it
// does with its tasks from then on. After each command the script shows the lease, every task that is not
// idle, and whether the instance now wants a round.
//
//	plan gen=N [member=M] [own=(T,...)] [take=(T:ID,...)] [release=(T:ID,...)] [learn=(T,...)] [standby=(T,...)] [superseded]
//	assign gen=N tasks=(T,...)    what a protocol of plain consumers assigned
//	revoke [tasks=(T,...)]        what runs is given up; without tasks: all
//	lost
//	token T id=ID          the poll of the committed offset found this token
//	opened T [after=ID]    state is up to date; the offset was committed after that release
//	failed T
//	looked T [after=ID | token=ID]
//	send T                 may the release be sent?
//	answer T OUTCOME       of the release: acknowledged, declined or unknown
//	commit tasks=(T,...)   an ordinary commit is sent
//	commit-answer OUTCOME tasks=(T,...) lease=M@N
//	learner T ready|behind
//	leave [deadline=MS]    cancel
//	metadata T             what an ordinary commit says
//	report                 what a join says
//	remember NAME T        keeps the task's epoch; `epoch=NAME` makes a later event late
//
// An identity is written <generation>/<owner>.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{m: handover.New(), member: "a", epochs: map[string]uint64{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	})
}

type script struct {
	m      *handover.Machine
	member string
	epochs map[string]uint64
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	task := func() (assign.TaskID, uint64) {
		id := parseTask(t, d, word(t, d, 0))
		epoch := s.m.Task(id).Epoch
		if a, ok := d.Arg("epoch"); ok {
			epoch = s.epochs[a.Vals[0]]
		}
		return id, epoch
	}
	switch d.Cmd {
	case "new":
		s.m, s.member = handover.New(), value(d, "member", "a")
		s.m.Stable, s.m.Racks, s.m.Yields = d.HasArg("stable"), d.HasArg("racks"), d.HasArg("yields")
	case "plan":
		s.member = value(d, "member", s.member)
		s.m.Adopt(handover.Lease{Member: s.member, Generation: int32(number(t, d, value(d, "gen", "")))}, parsePlan(t, d))
		if s.m.Superseded() {
			say("superseded")
		}
	case "assign":
		s.m.Assign(handover.Lease{Member: s.member, Generation: int32(number(t, d, value(d, "gen", "")))}, parseTasks(t, d, "tasks"))
	case "revoke":
		some := parseTasks(t, d, "tasks")
		s.m.Revoke(func(id assign.TaskID) bool { return !d.HasArg("tasks") || slices.Contains(some, id) })
		say("%s", choose(s.m.Releasing(), "releasing", "nothing to wait for"))
	case "lost":
		s.m.Lost()
	case "token":
		id, epoch := task()
		var tok *handover.Token
		if v := value(d, "id", ""); v != "" {
			tok = &handover.Token{Release: parseRelease(t, d, v)}
		}
		say("%s", choose(s.m.TokenSeen(id, epoch, tok), "starts", "waits"))
	case "opened":
		id, epoch := task()
		say("%s", choose(s.m.Opened(id, epoch, parseFound(t, d)), "processes", "does not process"))
	case "failed":
		s.m.Failed(task())
	case "looked":
		id, epoch := task()
		s.m.Looked(id, epoch, parseFound(t, d))
	case "send":
		if l, ok := s.m.ReleaseSent(task()); ok {
			say("sends under %s@%d", l.Member, l.Generation)
		} else {
			say("does not send")
		}
	case "answer":
		id, epoch := task()
		s.m.ReleaseDone(id, epoch, parseOutcome(t, d, word(t, d, 1)))
	case "commit":
		s.m.CommitSent(parseTasks(t, d, "tasks"))
	case "commit-answer":
		member, gen, _ := strings.Cut(value(d, "lease", ""), "@")
		lease := handover.Lease{Member: member, Generation: int32(number(t, d, gen))}
		s.m.CommitDone(parseTasks(t, d, "tasks"), lease, parseOutcome(t, d, word(t, d, 0)))
	case "learner":
		id, epoch := task()
		s.m.CopyReady(id, epoch, word(t, d, 1) == "ready")
	case "leave":
		s.m.SetLeaving(true, number(t, d, value(d, "deadline", "0")))
	case "cancel":
		s.m.SetLeaving(false, 0)
	case "metadata":
		id, _ := task()
		return s.m.Metadata(id).String()
	case "report":
		return reportString(s.m.Report())
	case "remember":
		id := parseTask(t, d, word(t, d, 1))
		s.epochs[word(t, d, 0)] = s.m.Task(id).Epoch
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return out.String() + s.state()
}

// state prints the machine as its caller can see it.
func (s *script) state() string {
	var b strings.Builder
	if l, ok := s.m.Lease(); ok {
		fmt.Fprintf(&b, "%s@%d", l.Member, l.Generation)
	} else {
		b.WriteString("no lease")
	}
	if s.m.Leaving() {
		fmt.Fprintf(&b, " leaving, holds %d%s", s.m.Held(), choose(s.m.Drained(), ", drained", ""))
	}
	b.WriteString("\n")
	for _, t := range s.m.Tasks() {
		x := s.m.Task(t)
		fmt.Fprintf(&b, "  %s %s", t, x.Phase)
		if x.Release != (assign.ReleaseID{}) {
			fmt.Fprintf(&b, " %d/%s", x.Release.Generation, x.Release.Owner)
		}
		if x.Ready {
			b.WriteString(" ready")
		}
		if x.Phase == handover.Running && !s.m.MayCommit(t) {
			b.WriteString(", may not commit")
		}
		if x.Phase == handover.Opening && !s.m.MayOpen(t) {
			b.WriteString(", may not open")
		}
		b.WriteString("\n")
	}
	if s.m.TakeRoundRequest() {
		b.WriteString("wants a round\n")
	}
	return b.String()
}

func reportString(r assign.Report) string {
	var b strings.Builder
	list := func(name string, n int, item func(i int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(&b, "%s:", name)
		for i := range n {
			b.WriteString(" " + item(i))
		}
		b.WriteString("\n")
	}
	handovers := func(h []assign.Handover) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf("%s:%d/%s", h[i].Task, h[i].Release.Generation, h[i].Release.Owner)
		}
	}
	list("owned", len(r.Owned), func(i int) string { return r.Owned[i].String() })
	list("releasing", len(r.Releasing), handovers(r.Releasing))
	list("taking", len(r.Taking), handovers(r.Taking))
	list("learning", len(r.Learning), func(i int) string { return r.Learning[i].Task.String() })
	list("ready", len(r.Ready), func(i int) string { return r.Ready[i].String() })
	list("standby", len(r.Standby), func(i int) string { return r.Standby[i].Task.String() })
	if r.Leaving {
		fmt.Fprintf(&b, "leaving by %d\n", r.DeadlineMs)
	}
	fmt.Fprintf(&b, "nonce %d\n", r.Nonce)
	return b.String()
}

func parsePlan(t *testing.T, d *datadriven.TestData) assign.MemberPlan {
	handovers := func(key string) (out []assign.Handover) {
		if a, ok := d.Arg(key); ok {
			for _, v := range a.Vals {
				id, release, _ := strings.Cut(v, ":")
				out = append(out, assign.Handover{Task: parseTask(t, d, id), Release: parseRelease(t, d, release)})
			}
		}
		return out
	}
	return assign.MemberPlan{
		Own: parseTasks(t, d, "own"), Take: handovers("take"), Release: handovers("release"),
		Learn: parseTasks(t, d, "learn"), Standby: parseTasks(t, d, "standby"), Superseded: d.HasArg("superseded"),
	}
}

// parseFound is the metadata of a committed offset.
func parseFound(t *testing.T, d *datadriven.TestData) (found handover.Metadata) {
	if v := value(d, "after", ""); v != "" {
		found.After = parseRelease(t, d, v)
	}
	if v := value(d, "token", ""); v != "" {
		found.Token = &handover.Token{Release: parseRelease(t, d, v)}
	}
	return found
}

func parseTasks(t *testing.T, d *datadriven.TestData, key string) (out []assign.TaskID) {
	if a, ok := d.Arg(key); ok {
		for _, v := range a.Vals {
			out = append(out, parseTask(t, d, v))
		}
	}
	slices.SortFunc(out, assign.TaskID.Compare)
	return out
}

func parseRelease(t *testing.T, d *datadriven.TestData, s string) assign.ReleaseID {
	gen, owner, ok := strings.Cut(s, "/")
	if !ok {
		d.Fatalf(t, "%q is no identity", s)
	}
	return assign.ReleaseID{Generation: int32(number(t, d, gen)), Owner: owner}
}

func parseTask(t *testing.T, d *datadriven.TestData, s string) assign.TaskID {
	id, err := assign.ParseTaskID(s)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return id
}

func parseOutcome(t *testing.T, d *datadriven.TestData, s string) handover.Outcome {
	switch s {
	case "acknowledged":
		return handover.Acknowledged
	case "declined":
		return handover.Declined
	case "unknown":
		return handover.Unknown
	}
	d.Fatalf(t, "%q is no outcome", s)
	return 0
}

// word is the i-th argument, one without a value.
func word(t *testing.T, d *datadriven.TestData, i int) string {
	if i >= len(d.CmdArgs) || len(d.CmdArgs[i].Vals) > 0 {
		d.Fatalf(t, "argument %d is missing", i+1)
	}
	return d.CmdArgs[i].Key
}

func value(d *datadriven.TestData, key, otherwise string) string {
	if a, ok := d.Arg(key); ok && len(a.Vals) > 0 {
		return a.Vals[0]
	}
	return otherwise
}

func number(t *testing.T, d *datadriven.TestData, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func choose(cond bool, yes, no string) string {
	if cond {
		return yes
	}
	return no
}
