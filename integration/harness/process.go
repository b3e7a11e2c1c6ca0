package harness

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a running streamworker.
type Process struct {
	Name  string
	Quiet bool // its output is not shown when the test fails
	t     testing.TB
	cmd   *exec.Cmd
	done  chan struct{} // closed when it has ended
	code  int           // its exit code, valid after done; -1: ended by a signal

	mu   sync.Mutex
	log  []Event
	text []byte // everything it wrote
}

// startProcess runs the binary in a place. Its output is kept; it is written to the file logs/<name>.log of the directory too, so
// that a test that hangs can be looked into.
func startProcess(t testing.TB, dir, name string, place Place, args ...string) *Process {
	t.Helper()
	p := &Process{Name: name, t: t, done: make(chan struct{}), cmd: exec.Command(Binary(), args...)}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	if err := place.Do(p.cmd.Start); err != nil {
		t.Fatalf("starting %s: %v (make build builds it)", p.cmd.Path, err)
	}
	writer.Close()
	go p.follow(reader, file)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() && !p.Quiet {
			p.dump()
		}
	})
	return p
}

// follow keeps what the process writes until it ends.
func (p *Process) follow(r *os.File, file *os.File) {
	defer close(p.done)
	defer file.Close()
	defer r.Close()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			file.Write(line)
			p.mu.Lock()
			p.text = append(p.text, line...)
			if e, ok := parseEvent(line); ok {
				p.log = append(p.log, e)
			}
			p.mu.Unlock()
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintf(os.Stderr, "reading the output of %s: %v\n", p.Name, err)
			}
			break
		}
	}
	p.cmd.Wait() //nolint:errcheck // its exit code says the same
	p.code = p.cmd.ProcessState.ExitCode()
}

// Output is everything the process has written so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.text)
}

// Events are the log lines written so far.
func (p *Process) Events() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log[:len(p.log):len(p.log)]
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %v to %s: %v", s, p.Name, err)
	}
}

// Kill ends the process by SIGKILL, as a crash does, and waits until it is gone.
func (p *Process) Kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("killing %s: %v", p.Name, err)
	}
	<-p.done
}

// Running tells whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Wait waits until the process ends by itself and returns its exit code.
func (p *Process) Wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.code
	case <-time.After(limit):
		p.t.Fatalf("%s has not ended after %v", p.Name, limit)
		return 0
	}
}

// dump prints the end of the output, for a test that has failed.
func (p *Process) dump() {
	const tail = 4 << 10
	text := p.Output()
	if len(text) > tail {
		text = "..." + text[len(text)-tail:]
	}
	p.t.Logf("output of %s:\n%s", p.Name, text)
}
