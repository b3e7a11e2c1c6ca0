package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: drawdrain SAMPLES LOG... > picture.svg")
		os.Exit(2)
	}
	if err := draw(os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "drawdrain:", err)
		os.Exit(1)
	}
}

func draw(w io.Writer, samples string, logs []string) error {
	h := &history{lanes: map[lane][]span{}, leaving: map[string]int64{}, drained: map[string]int64{}}
	if err := eachLine(samples, h.sample); err != nil {
		return err
	}
	for _, log := range logs {
		if err := eachLine(log, h.event); err != nil {
			return err
		}
	}
	if len(h.moves) == 0 {
		return errors.New("no handover in the logs: did the instances log as json?")
	}
	if h.crop(); len(h.moves) == 0 {
		return errors.New("no handover after the instance was marked as leaving")
	}
	h.settle()
	_, err := io.WriteString(w, h.svg())
	return err
}

func eachLine(name string, take func(string) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if err := take(lines.Text()); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	return lines.Err()
}

// status is what of `status -o json` is drawn.
type status struct {
	Instances []struct {
		ID       string   `json:"id"`
		Active   []string `json:"active"`
		Learning []struct {
			Task  string `json:"task"`
			Ready bool   `json:"ready"`
		} `json:"learning"`
	} `json:"instances"`
}

// lane is a task on an instance.
type lane struct{ instance, task string }

// Roles of a task on an instance.
const (
	active   = "active"
	learning = "learning"
	ready    = "ready"
)

// span is a stretch of time, in ms since the epoch, in which a lane had one role.
type span struct {
	from, to int64
	role     string
}

// move is a handover: when the new owner began, and how long nobody processed.
type move struct {
	lane
	at  int64
	gap float64 // ms
}

type history struct {
	lanes   map[lane][]span
	moves   []move
	leaving map[string]int64 // when an instance was marked
	drained map[string]int64 // when it had given everything away
	start   int64
	end     int64
}

// sample takes one look at the group: a role lasts until the sample that does not show it any more.
func (h *history) sample(line string) error {
	stamp, text, _ := strings.Cut(line, " ")
	at, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("want ms since the epoch, then the status: %w", err)
	}
	var s status
	if json.Unmarshal([]byte(text), &s) != nil {
		return nil // the command failed, at the start of the application say
	}
	seen := map[lane]bool{}
	note := func(l lane, role string) {
		seen[l] = true
		spans := h.lanes[l]
		if n := len(spans); n > 0 && spans[n-1].to == h.end {
			spans[n-1].to = at
			if spans[n-1].role == role {
				return
			}
		}
		h.lanes[l] = append(spans, span{from: at, to: at, role: role})
	}
	for _, i := range s.Instances {
		for _, task := range i.Active {
			note(lane{i.ID, task}, active)
		}
		for _, l := range i.Learning {
			role := learning
			if l.Ready {
				role = ready
			}
			note(lane{i.ID, l.Task}, role)
		}
	}
	for l, spans := range h.lanes {
		if last := &spans[len(spans)-1]; !seen[l] && last.to == h.end {
			last.to = at
		}
	}
	h.end = at
	return nil
}

// event takes one line of a log: handovers, and the beginning and the end of leaves.
func (h *history) event(line string) error {
	var e struct {
		Time     time.Time `json:"time"`
		Msg      string    `json:"msg"`
		Role     string    `json:"role"`
		Instance string    `json:"instance"`
		Task     string    `json:"task"`
		Gap      float64   `json:"gap_ms"`
	}
	if json.Unmarshal([]byte(line), &e) != nil {
		return nil // what the command itself says at its end
	}
	at := e.Time.UnixMilli()
	switch {
	case e.Msg == "handover" && e.Role == "take":
		h.moves = append(h.moves, move{lane: lane{e.Instance, e.Task}, at: at, gap: e.Gap})
	case e.Msg == "marked as leaving":
		h.leaving[e.Instance] = at
	case e.Msg == "drained: leaving the group":
		h.drained[e.Instance] = at
	}
	return nil
}

// settle corrects the samples, which are up to half a second late, by the handovers: the former owner ran the task
// until the gap began, the new one from its end on.
func (h *history) settle() {
	for _, m := range h.moves {
		for l, spans := range h.lanes {
			if l.task != m.task {
				continue
			}
			for i := range spans {
				s := &spans[i]
				switch {
				case l == m.lane && s.role != active:
					s.from, s.to = min(s.from, m.at), min(s.to, m.at)
				case l == m.lane:
					s.from = min(s.from, m.at)
				case s.role == active && s.from < m.at && s.to > m.at:
					s.to = m.at - int64(m.gap)
				}
			}
		}
	}
}

// crop leaves what belongs to the leave: from a second before the first mark to a second after the last handover.
func (h *history) crop() {
	h.start = h.moves[0].at
	if marks := slices.Sorted(maps.Values(h.leaving)); len(marks) > 0 {
		h.start = marks[0]
	}
	h.start -= 1000
	h.moves = slices.DeleteFunc(h.moves, func(m move) bool { return m.at < h.start })
	last := h.start
	for _, m := range h.moves {
		last = max(last, m.at)
	}
	h.end = min(h.end, last+1000)
	for l, spans := range h.lanes {
		spans = slices.DeleteFunc(spans, func(s span) bool { return s.to <= h.start || s.from >= h.end })
		for i := range spans {
			spans[i].from, spans[i].to = max(spans[i].from, h.start), min(spans[i].to, h.end)
		}
		if h.lanes[l] = spans; len(spans) == 0 {
			delete(h.lanes, l)
		}
	}
}
