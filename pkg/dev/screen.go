package dev

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// How often the screen shows something new, and how many events stay on it.
const (
	drawEvery  = 200 * time.Millisecond
	plainEvery = 2 * time.Second
	eventLines = 8
)

// Screen shows a run: on a terminal as a table that is drawn anew, elsewhere as lines.
type Screen struct {
	w        io.Writer
	terminal bool
	palette  palette

	events []string
	drawn  int // lines on the terminal
	at     time.Time
}

// NewScreen returns a screen on w. Colours are for terminals only.
func NewScreen(w io.Writer, terminal, colours bool) *Screen {
	return &Screen{w: w, terminal: terminal, palette: palette(terminal && colours)}
}

// tell shows an event that happened so long after the stream began.
func (s *Screen) tell(after time.Duration, event string) {
	line := fmt.Sprintf("  %s  %s", clock(after), event)
	if !s.terminal {
		fmt.Fprintln(s.w, strings.TrimSpace(line))
		return
	}
	s.events = append(s.events, line)
	if len(s.events) > eventLines {
		s.events = s.events[1:]
	}
	s.at = time.Time{} // draw it at once
}

// draw shows the frame if the last one is old enough.
func (s *Screen) draw(f frame) {
	now := time.Now()
	switch {
	case s.terminal && now.Sub(s.at) >= drawEvery:
		s.at = now
		s.paint(f)
	case !s.terminal && now.Sub(s.at) >= plainEvery:
		s.at = now
		if line := f.plain(); line != "" {
			fmt.Fprintf(s.w, "%s  %s\n", clock(f.elapsed), line)
		}
	}
}

// Control sequences. Without wrapping, a line that is too long for the terminal takes one line all the same.
const (
	hideCursor, showCursor = "\x1b[?25l", "\x1b[?25h"
	wrapOff, wrapOn        = "\x1b[?7l", "\x1b[?7h"
	clearLine, clearBelow  = "\x1b[K", "\x1b[J"
)

func (s *Screen) paint(f frame) {
	var b strings.Builder
	b.WriteString(hideCursor + wrapOff)
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	lines := f.render(s.events, s.palette)
	for _, line := range lines {
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(clearBelow + wrapOn)
	s.drawn = len(lines)
	_, _ = io.WriteString(s.w, b.String()) // a terminal that is gone is no reason to fail
}

// close leaves the terminal as it was, with the last frame on it.
func (s *Screen) close() {
	if s.terminal && s.drawn > 0 {
		_, _ = io.WriteString(s.w, showCursor+"\n")
	}
}

// palette colours text; false: not at all.
type palette bool

func (p palette) paint(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string   { return p.paint("1", s) }
func (p palette) faint(s string) string  { return p.paint("2", s) }
func (p palette) green(s string) string  { return p.paint("32", s) }
func (p palette) yellow(s string) string { return p.paint("33", s) }
func (p palette) red(s string) string    { return p.paint("31", s) }
func (p palette) fresh(s string) string  { return p.paint("1;7;32", s) }
