package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// App is an application that counts records by key, run as several instances.
type App struct {
	Name       string // also the consumer group
	Kafka      *Kafka
	Partitions int32
	Dir        string // configuration, state directories, logs
	t          testing.TB
}

// file is the configuration; settings are added by NewApp.
const file = `app: %s
kafka: {brokers: ["%s"]}
log: {format: json, level: info}
streams:
  - name: events
    from: {topic: %s}
    steps:
      - count: {store: counts}
      - to: {topic: %s, value: int}
`

// NewApp creates the topics of an application and writes its configuration. Each of settings is YAML for the top
// level of the file, e.g. "learners: {bandwidth: 1MiB}".
func NewApp(t testing.TB, k *Kafka, name string, partitions int32, settings ...string) *App {
	t.Helper()
	a := &App{Name: Unique(name), Kafka: k, Partitions: partitions, Dir: t.TempDir(), t: t}
	admin := kadm.NewClient(k.Client(t))
	if _, err := admin.CreateTopics(t.Context(), partitions, -1, nil, a.Input(), a.Output()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		all, err := admin.ListTopics(ctx)
		if err != nil {
			return // a broker of its own is gone by now
		}
		var ours []string
		for _, topic := range all.Names() {
			if strings.HasPrefix(topic, a.Name+"-") {
				ours = append(ours, topic)
			}
		}
		k.deleteTopics(admin, ours...)
	})
	a.Write(fmt.Sprintf(file, a.Name, k.Address, a.Input(), a.Output()) + strings.Join(settings, "\n") + "\n")
	return a
}

// Input is the topic that the application reads.
func (a *App) Input() string { return a.Name + "-in" }

// Output is the topic with each key's count.
func (a *App) Output() string { return a.Name + "-out" }

// Config is the path of the configuration.
func (a *App) Config() string { return filepath.Join(a.Dir, "app.yaml") }

// Write replaces the configuration.
func (a *App) Write(config string) {
	a.t.Helper()
	if err := os.WriteFile(a.Config(), []byte(config), 0o644); err != nil {
		a.t.Fatal(err)
	}
}

// Start starts an instance; it keeps its state in a directory of its id.
func (a *App) Start(id string, flags ...string) *Process {
	a.t.Helper()
	return a.StartIn(here{}, id, flags...)
}

// Place is where a process is started.
type Place interface {
	// Do runs f there.
	Do(f func() error) error
}

// StartIn starts an instance in a place; a flag given here outranks those that Start sets.
func (a *App) StartIn(place Place, id string, flags ...string) *Process {
	a.t.Helper()
	return startProcess(a.t, a.Dir, id, place, append(a.runArgs(id), flags...)...)
}

func (a *App) runArgs(id string) []string {
	return []string{"run", "-c", a.Config(), "--instance-id", id, "--state-dir", filepath.Join(a.Dir, "state", id)}
}

// here is the place of the test itself.
type here struct{}

func (here) Do(f func() error) error { return f() }

// Result is what a command that has ended wrote.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Command runs a streamworker command to its end.
func Command(t testing.TB, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("streamworker %s: %v", strings.Join(args, " "), err)
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// remote adds what makes a command work from a machine that is none of the instances'.
func (a *App) remote(command string, flags ...string) []string {
	return append([]string{command, "--brokers", a.Kafka.Address, "--app", a.Name}, flags...)
}

// Leave marks instances as leaving, chosen by flags.
func (a *App) Leave(flags ...string) {
	a.t.Helper()
	if r := Command(a.t, a.remote("leave", flags...)...); r.Code != 0 {
		a.t.Fatalf("leave %v: exit code %d: %s", flags, r.Code, r.Stderr)
	}
}

// Begin starts a command that works from a machine that is none of the instances', and does not wait for its end.
func (a *App) Begin(name, command string, flags ...string) *Process {
	a.t.Helper()
	return startProcess(a.t, a.Dir, name, here{}, a.remote(command, flags...)...)
}

// Status is what status -o json prints.
type Status struct {
	App        string     `json:"app"`
	Generation int32      `json:"generation"`
	Instances  []Instance `json:"instances"`
	Tasks      []Task     `json:"tasks"`
}

// Instance is one of the instances in a Status.
type Instance struct {
	ID       string            `json:"id"`
	State    string            `json:"state"`
	Labels   map[string]string `json:"labels"`
	Active   []string          `json:"active"`
	Learning []Learning        `json:"learning"`
	Standby  []string          `json:"standby"`
}

// Learning is a learner in a Status.
type Learning struct {
	Task  string `json:"task"`
	Lag   int64  `json:"lag"`
	Ready bool   `json:"ready"`
}

// Task is one of the tasks in a Status.
type Task struct {
	ID      string  `json:"id"`
	Active  *string `json:"active"`
	Learner *string `json:"learner"`
	Lag     int64   `json:"lag"`
}

// Status asks for the status. While Kafka is down it is empty.
func (a *App) Status() Status {
	a.t.Helper()
	r := Command(a.t, a.remote("status", "-o", "json")...)
	var s Status
	if r.Code == 0 {
		if err := json.Unmarshal([]byte(r.Stdout), &s); err != nil {
			a.t.Fatalf("status -o json printed %q: %v", r.Stdout, err)
		}
	}
	return s
}

// Instance returns the instance of that id; its zero value if there is none.
func (s Status) Instance(id string) Instance {
	i := slices.IndexFunc(s.Instances, func(i Instance) bool { return i.ID == id })
	if i < 0 {
		return Instance{}
	}
	return s.Instances[i]
}

// Balanced tells whether exactly these instances share the tasks and none is on the move: their loads differ by less
// than the balancing factor's default, 2.
func (s Status) Balanced(tasks int, ids ...string) bool {
	if len(s.Instances) != len(ids) {
		return false
	}
	total, least, most := 0, tasks, 0
	for _, id := range ids {
		i := s.Instance(id)
		if i.State != "running" || len(i.Learning) > 0 {
			return false
		}
		total, least, most = total+len(i.Active), min(least, len(i.Active)), max(most, len(i.Active))
	}
	return total == tasks && most-least < 2
}

// AwaitBalanced waits until exactly these instances share the tasks evenly.
func (a *App) AwaitBalanced(ids ...string) {
	a.t.Helper()
	var last Status
	Until(a.t, 2*time.Minute, fmt.Sprintf("%v share %d tasks", ids, a.Partitions), func() bool {
		last = a.Status()
		if a.t.Failed() {
			a.t.FailNow()
		}
		return last.Balanced(int(a.Partitions), ids...)
	})
}
