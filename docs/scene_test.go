package docs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ledger has the command lines that stories ran.
type ledger struct {
	mu      sync.Mutex
	lines   map[string]bool
	stories int // that came to their end
}

func (l *ledger) ran(line, more string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		l.lines = map[string]bool{}
	}
	l.lines[line] = true
	l.lines[line+" "+more] = true
}

func (l *ledger) told() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stories++
}

var placeholder = regexp.MustCompile(`^[A-Z]{3,}$`)

// has tells whether a command line was run; of one that is named in a sentence, whether one with all its words was.
func (l *ledger) has(s shown) bool {
	if !s.part {
		return l.lines[s.line]
	}
	for line := range l.lines {
		words, missing := strings.Fields(line), false
		for _, w := range strings.Fields(s.line) {
			missing = missing || !placeholder.MatchString(w) && !slices.Contains(words, w)
		}
		if !missing && words[0] == strings.Fields(s.line)[0] {
			return true
		}
	}
	return false
}

// scene is where a story happens: a directory with what documents presume, and a broker.
type scene struct {
	t       *testing.T
	program *program
	ran     *ledger
	dir     string
	brokers string
	admin   *kadm.Client
	client  *kgo.Client
	here    *strings.Replacer // puts this directory and broker in the place of those in documents
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func newScene(t *testing.T, b *program, ran *ledger) *scene {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sws") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := &scene{t: t, program: b, ran: ran, dir: dir, brokers: strings.Join(c.ListenAddrs(), ",")}
	s.here = strings.NewReplacer(
		"kafka:9092", s.brokers, "localhost:9092", s.brokers, "$KAFKA", s.brokers, "$APP", "words",
		"/var/lib/streamworker", filepath.Join(dir, "var"), "/tmp/word-count", filepath.Join(dir, "word-count"), "/tmp/words-1", filepath.Join(dir, "words-1"), "FILE", "app.yaml", "DIR", "man",
	)
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	s.admin = kadm.NewClient(s.client)
	if _, err := s.admin.CreateTopics(t.Context(), 4, 1, nil, "lines", "counts"); err != nil {
		t.Fatal(err)
	}
	for i := range int32(100) {
		s.client.Produce(t.Context(), &kgo.Record{Topic: "lines", Partition: i % 4, Value: []byte("to be or not to be")}, nil)
	}
	if err := s.client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	yaml := yamlBlock.FindStringSubmatch(read(t, "../README.md"))
	if yaml == nil {
		t.Fatal("README.md has no configuration")
	}
	// words.yaml is the README's, app.yaml the one that the other documents presume.
	words := s.here.Replace(strings.ReplaceAll("\n"+yaml[1], "\n   ", "\n"))
	s.write("words.yaml", words)
	s.write("app.yaml", strings.NewReplacer("app: word-count", "app: words\ninstance_id: worker-1\nstate: {dir: "+filepath.Join(dir, "var")+"}",
		"kafka:\n", "admin: {listen: '127.0.0.1:0'}\nkafka:\n  heartbeat: 200ms\n").Replace(words))
	cases := yamlBlock.FindStringSubmatch(read(t, "testing.md"))
	if cases == nil {
		t.Fatal("testing.md has no cases")
	}
	s.write("words_test.yaml", cases[1])
	s.write("app_test.yaml", cases[1])
	s.write("records.json", `{"inputs":[{"topic":"lines","key":null,"value":"be","ts":1000}],"advance_wall_clock_ms":0}`)
	examples, err := filepath.Abs("../examples")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// process is a command line that runs.
type process struct {
	t        *testing.T
	line     string
	cmd      *exec.Cmd
	mu       sync.Mutex
	out, log bytes.Buffer // guarded by mu
	ended    chan struct{}
}

// writer is one of a process's outputs.
type writer struct {
	p *process
	b *bytes.Buffer
}

func (w writer) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.b.Write(b)
}

// said is all that the process has written.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String() + p.log.String()
}

// start runs a line as a document shows it, with more words that only the test needs.
func (s *scene) start(line string, more ...string) *process {
	s.t.Helper()
	s.ran.ran(line, strings.Join(more, " "))
	words := append(s.glob(split(s.here.Replace(line))), more...)
	p := &process{t: s.t, line: line, cmd: exec.Command(s.program.path, words...), ended: make(chan struct{})}
	p.cmd.Dir = s.dir
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir}
	p.cmd.Stdout, p.cmd.Stderr = writer{p, &p.out}, writer{p, &p.log}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // its exit code says the same
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if s.t.Failed() {
			s.t.Logf("streamworker %s:\n%s", line, p.said())
		}
	})
	return p
}

var shellWord = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)

// split cuts a line into words as a shell does, for lines as plain as those in documents.
func split(line string) []string {
	words := shellWord.FindAllString(line, -1)
	for i, w := range words {
		if w[0] == '\'' || w[0] == '"' {
			words[i] = w[1 : len(w)-1]
		}
	}
	return words
}

// run runs a line to its end, which has to be code 0, and says what has to be in its output.
func (s *scene) run(line, want string, more ...string) {
	s.t.Helper()
	s.start(line, more...).ends(0, want)
}

// ends waits for the end of the process.
func (p *process) ends(code int, want string) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("streamworker %s does not end:\n%s", p.line, p.said())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code || !strings.Contains(p.said(), want) {
		p.t.Fatalf("streamworker %s: exit code %d, want %d; output, want %q:\n%s", p.line, got, code, want, p.said())
	}
}

// interrupt is Ctrl-C after something was said.
func (p *process) interrupt(after string) {
	p.t.Helper()
	await(p.t, after, func() bool { return strings.Contains(p.said(), after) })
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// glob puts the files in the place of patterns, as a shell does.
func (s *scene) glob(words []string) (all []string) {
	for _, w := range words {
		files, err := filepath.Glob(filepath.Join(s.dir, w))
		if err != nil || !strings.Contains(w, "*") || len(files) == 0 {
			all = append(all, w)
			continue
		}
		all = append(all, files...)
	}
	return all
}

// output is what a line prints for programs; "" if it failed.
func (s *scene) output(words ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.program.path, words...).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(out)), "")
}

func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}
