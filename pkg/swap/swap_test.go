package swap

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Every script in testdata shows a swap the statuses of a group, and prints what it does and says. Its commands:
//
//	swap from=SELECTOR to=SELECTOR [min=N]     the command is given, on whatever machine
//	status                                     lines: ID STATE POOL [run=N] [starts=N] [gen=N] [capacity=N] [active=T,T] [learning=T:lag/most,T:ready] [left=WHY] [silent]
//	leave ID... / cancel ID...                 marks by hand, or taken back by anyone
//	look [after=DURATION]                      a look at all of it; marks that are asked for are set
func TestSwap(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			w := &world{now: time.UnixMilli(1_700_000_000_000), statuses: map[string]*control.Status{}, silent: map[string]bool{}}
			datadriven.RunTest(t, file, w.do)
		})
	}
}

type world struct {
	now      time.Time
	cfg      Config
	swap     *Swap
	statuses map[string]*control.Status
	silent   map[string]bool
	marks    []control.Mark
}

func (w *world) do(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "swap":
		w.cfg = Config{From: selector(t, d, "from"), To: selector(t, d, "to")}
		d.MaybeScanArgs(t, "min", &w.cfg.Min)
		w.swap = New(w.cfg)
	case "status":
		for line := range strings.SplitSeq(d.Input, "\n") {
			w.status(t, strings.Fields(line))
		}
	case "leave":
		for _, a := range d.CmdArgs {
			w.marks = append(w.marks, control.Mark{Instance: a.Key, Incarnation: w.statuses[a.Key].Incarnation})
		}
	case "cancel":
		for _, a := range d.CmdArgs {
			w.unmark(a.Key)
		}
	case "look":
		var after string
		if d.MaybeScanArgs(t, "after", &after) {
			pause, err := time.ParseDuration(after)
			if err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(pause)
		}
		return w.look()
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	return ""
}

func (w *world) unmark(id string) {
	w.marks = slices.DeleteFunc(w.marks, func(m control.Mark) bool { return m.Instance == id })
}

func selector(t *testing.T, d *datadriven.TestData, arg string) control.Selector {
	t.Helper()
	for _, a := range d.CmdArgs {
		if a.Key == arg {
			sel, err := control.ParseSelector(strings.Join(a.Vals, ","))
			if err != nil {
				t.Fatal(err)
			}
			return sel
		}
	}
	t.Fatalf("no %s", arg)
	return nil
}

func (w *world) status(t *testing.T, words []string) {
	t.Helper()
	s := &control.Status{
		Instance: words[0], State: control.State(words[1]), Labels: map[string]string{"pool": words[2]},
		Incarnation: assign.Incarnation{StartMs: 1}, Generation: 1, Seen: w.now,
	}
	w.statuses[s.Instance], w.silent[s.Instance] = s, false
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "run":
			s.Incarnation.StartMs = number(value)
		case "starts":
			s.Incarnation.Starts = uint32(number(value))
		case "gen":
			s.Generation = int32(number(value))
		case "capacity":
			s.Capacity = uint32(number(value))
		case "active":
			s.Active = strings.Split(value, ",")
		case "left":
			s.Left = value
		case "silent":
			w.silent[s.Instance] = true
		case "learning":
			s.Behind = map[string]int64{}
			for one := range strings.SplitSeq(value, ",") {
				task, how, _ := strings.Cut(one, ":")
				lag, most, known := strings.Cut(how, "/")
				l := control.Learning{Task: task, Ready: how == "ready"}
				if known {
					l.Lag = number(lag)
					s.Behind[task] = number(most)
				}
				s.Learning = append(s.Learning, l)
			}
		default:
			t.Fatalf("unknown word %q", word)
		}
	}
}

func (w *world) look() string {
	var all []control.Status
	for _, id := range slices.Sorted(maps.Keys(w.statuses)) {
		s := *w.statuses[id]
		if s.Left == "" && !w.silent[id] {
			s.Seen = w.now
		}
		all = append(all, s)
	}
	step, err := w.swap.Observe(all, w.marks, w.now)
	if err != nil {
		kind := "other"
		switch {
		case errors.Is(err, ErrNobody):
			kind = "nobody"
		case errors.Is(err, ErrOverlap):
			kind = "overlap"
		}
		return fmt.Sprintf("refused (%s): %v", kind, err)
	}
	for _, target := range step.Mark {
		w.unmark(target.Instance) // the last word for an instance counts
		w.marks = append(w.marks, control.Mark{Instance: target.Instance, Incarnation: target.Incarnation, Swap: w.cfg.Name()})
	}
	var b strings.Builder
	fmt.Fprint(&b, step.Phase)
	if step.Wait != "" {
		fmt.Fprintf(&b, ": %s", step.Wait)
	}
	if step.Phase == Draining {
		fmt.Fprintf(&b, ": %d of %d tasks moved", step.Moved, step.Tasks)
		if step.Left >= 0 {
			fmt.Fprintf(&b, ", %s left", step.Left.Round(time.Second))
		}
	}
	fmt.Fprintln(&b)
	for _, target := range step.Mark {
		fmt.Fprintf(&b, "mark %s\n", target.Instance)
	}
	for _, id := range step.Again {
		fmt.Fprintf(&b, "%s was started anew\n", id)
	}
	for _, p := range step.Old {
		fmt.Fprintf(&b, "%s: %s", p.Instance, p.Outcome)
		for _, task := range p.Tasks {
			fmt.Fprintf(&b, " %s", task.ID)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}
