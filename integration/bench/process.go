package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a child. What it writes is kept, with the time at which it was read.
type process struct {
	name  string
	began time.Time
	cmd   *exec.Cmd
	done  chan struct{} // closed when it has ended
	code  int           // valid after done; -1: by a signal

	mu    sync.Mutex
	lines []line
	more  chan struct{} // closed at the next line
}

type line struct {
	at   time.Time
	text string
}

// startProcess starts a command that writes to a log file as well. It gets none of the terminal's signals: the one who
// started it stops it.
func startProcess(name, logFile string, env []string, argv ...string) (*process, error) {
	file, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p := &process{name: name, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{}), more: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.began = time.Now()
	err = p.cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		file.Close()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go p.follow(r, file)
	return p, nil
}

// follow keeps what the process writes until it ends.
func (p *process) follow(r, file *os.File) {
	defer close(p.done)
	defer file.Close()
	defer r.Close()
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		text := scanner.Text()
		fmt.Fprintln(file, text)
		p.mu.Lock()
		p.lines = append(p.lines, line{time.Now(), text})
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
	p.cmd.Wait() //nolint:errcheck // its exit code says the same
	p.code = p.cmd.ProcessState.ExitCode()
}

// await returns the first line that matches, when it comes. A process that ends before is an error.
func (p *process) await(ctx context.Context, what string, match func(string) bool) (line, error) {
	for next := 0; ; {
		p.mu.Lock()
		lines, more := p.lines, p.more
		p.mu.Unlock()
		for ; next < len(lines); next++ {
			if match(lines[next].text) {
				return lines[next], nil
			}
		}
		select {
		case <-ctx.Done():
			return line{}, fmt.Errorf("waiting until %s says %s: %w", p.name, what, ctx.Err())
		case <-more:
		case <-p.done:
			p.mu.Lock()
			n := len(p.lines)
			p.mu.Unlock()
			if next == n {
				return line{}, fmt.Errorf("%s ended with exit code %d before it said %s: %s", p.name, p.code, what, p.tail())
			}
		}
	}
}

// tail is the end of what it wrote, for an error.
func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last []string
	for _, l := range p.lines[max(0, len(p.lines)-5):] {
		last = append(last, l.text)
	}
	return strings.Join(last, " | ")
}

// matching are the lines so far that contain a text.
func (p *process) matching(text string) []line {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []line
	for _, l := range p.lines {
		if strings.Contains(l.text, text) {
			found = append(found, l)
		}
	}
	return found
}

// matchingSince are those of matching that were read at or after a time.
func (p *process) matchingSince(text string, since time.Time) []line {
	return slices.DeleteFunc(p.matching(text), func(l line) bool { return l.at.Before(since) })
}

// stopSignal asks for an orderly end.
const stopSignal = syscall.SIGTERM

// stopLimit bounds an orderly end.
const stopLimit = 70 * time.Second

// stop asks the process to end and waits until it has.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(stopSignal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	return p.ended(stopLimit)
}

// ended waits until the process ends by itself.
func (p *process) ended(limit time.Duration) error {
	select {
	case <-p.done:
		return nil
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("%s did not end within %v", p.name, limit)
	}
}

// kill ends the process, if it still runs, and waits until it has ended.
func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it may have ended
	<-p.done
}

// usage is what a process has used since it began.
type usage struct {
	at  time.Time
	cpu float64 // seconds, user and system, of its children too
	resident,
	peak float64 // MiB
}

// used reads it from /proc.
func (p *process) used() (usage, error) {
	u := usage{at: time.Now()}
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return u, err
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return u, err
	}
	if u.cpu, err = cpuSeconds(string(stat)); err != nil {
		return u, err
	}
	u.resident, u.peak = statusMiB(string(status), "VmRSS:"), statusMiB(string(status), "VmHWM:")
	return u, nil
}

// total is the processor time, in seconds, of a process that has ended.
func (p *process) total() float64 {
	return (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Seconds()
}

// ticksPerSecond is the unit of processor times in /proc: USER_HZ, 100 on all of Linux.
const ticksPerSecond = 100

// cpuSeconds reads utime, stime, cutime and cstime from a line of /proc/PID/stat.
func cpuSeconds(stat string) (float64, error) {
	// The second field is the command in brackets; it may contain anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return 0, fmt.Errorf("cannot read %q", stat)
	}
	sum := 0.0
	for _, f := range fields[11:15] {
		ticks, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot read %q: %w", stat, err)
		}
		sum += ticks
	}
	return sum / ticksPerSecond, nil
}

// statusMiB reads a size from /proc/PID/status; 0: it is not there.
func statusMiB(status, field string) float64 {
	for text := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(text, field); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib / 1024
		}
	}
	return 0
}
