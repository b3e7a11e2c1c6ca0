package command

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/streamworker/streamworker/pkg/swap"
)

// swapView shows how a swap goes on: for people on standard error, with the outcomes on standard output at the end; for programs a
// line of JSON on standard output for each change.
type swapView struct {
	app      string
	cfg      swap.Config
	json     bool
	out      io.Writer
	progress progress

	known  bool   // something was shown
	last   string // the last line, as far as it does not change all the time
	failed bool   // the last look had no answer
	alone  bool   // that nobody is there to take the tasks was said
}

// swapLine is a line for programs.
type swapLine struct {
	App         string       `json:"app"`
	From        string       `json:"from"`
	To          string       `json:"to"`
	Phase       swap.Phase   `json:"phase"`
	Wait        string       `json:"wait,omitempty"` // what is missing, of waiting
	New         swap.Pool    `json:"new"`
	Instances   []swapLeaver `json:"instances"` // of the old pool
	Tasks       int          `json:"tasks"`     // that the old pool has had since the command began
	Moved       int          `json:"moved"`
	SecondsLeft *int         `json:"seconds_left"` // null: not known
}

type swapLeaver struct {
	ID      string   `json:"id"`
	Outcome string   `json:"outcome"`
	Tasks   []string `json:"tasks"` // left
}

// silent reports whether a look without an answer is one to go on after, and says so once: the swap does not need this command.
func (v *swapView) silent(err error) bool {
	if v.known && !v.failed {
		v.progress.line("no news: " + err.Error())
		v.failed = true
	}
	return v.known
}

func (v *swapView) update(step swap.Step, allLeave bool, now time.Time) error {
	v.known, v.failed = true, false
	for _, id := range step.Again {
		v.progress.line(id + " was started anew, and is marked again: its supervisor should not start it")
	}
	if allLeave && !v.alone && step.Phase == swap.Draining {
		v.progress.line(allLeaving)
	}
	v.alone = allLeave
	if v.json {
		return v.line(step)
	}
	v.text(step)
	if step.Phase != swap.Ended {
		return nil
	}
	results := make([]result, len(step.Old))
	for i, p := range step.Old {
		results[i] = result{ID: p.Instance, Outcome: p.Outcome.String()}
	}
	return report(v.out, false, results)
}

func (v *swapView) text(step swap.Step) {
	head := "waiting for " + step.Wait
	if step.Phase != swap.Waiting {
		head = fmt.Sprintf("%s: %d of %s moved", v.cfg.Name(), step.Moved, count(step.Tasks, "task"))
	}
	if !v.progress.terminal && head != v.last {
		v.progress.line(head + remaining(step))
	}
	v.last, v.progress.head = head, head+remaining(step)
	v.progress.update(step.Old)
}

func remaining(step swap.Step) string {
	if step.Phase != swap.Draining || step.Left <= 0 {
		return ""
	}
	return ", about " + max(time.Second, step.Left.Round(time.Second)).String() + " left"
}

// line prints a step for programs, if more has changed than the time that is left.
func (v *swapView) line(step swap.Step) error {
	l := swapLine{
		App: v.app, From: v.cfg.From.String(), To: v.cfg.To.String(), Phase: step.Phase, Wait: step.Wait, New: step.New,
		Instances: []swapLeaver{}, Tasks: step.Tasks, Moved: step.Moved,
	}
	for _, p := range step.Old {
		one := swapLeaver{ID: p.Instance, Outcome: p.Outcome.String(), Tasks: []string{}}
		for _, t := range p.Tasks {
			one.Tasks = append(one.Tasks, t.ID)
		}
		l.Instances = append(l.Instances, one)
	}
	data, err := json.Marshal(l)
	if err != nil || string(data) == v.last {
		return err
	}
	v.last = string(data)
	if step.Left >= 0 && step.Phase != swap.Waiting {
		seconds := int(step.Left.Round(time.Second).Seconds())
		l.SecondsLeft = &seconds
	}
	return json.NewEncoder(v.out).Encode(l)
}
