package deploy

import (
	"bufio"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
)

const unitFile = "systemd/streamworker@.service"

// service is the unit file, read as systemd reads it, for a host whose directories are below root.
type service struct {
	t       *testing.T
	root    string
	options map[string][]string // of the section [Service]
}

func newService(t *testing.T) *service {
	t.Helper()
	f, err := os.Open(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := unit.DeserializeOptions(f)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("/tmp", "swu") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	s := &service{t: t, root: root, options: map[string][]string{}}
	for _, o := range all {
		if o.Section == "Service" {
			s.options[o.Name] = append(s.options[o.Name], o.Value)
		}
	}
	for _, dir := range []string{"etc", "var"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// one is an option that is there once.
func (s *service) one(name string) string {
	s.t.Helper()
	if len(s.options[name]) != 1 {
		s.t.Fatalf("%s is there %d times", name, len(s.options[name]))
	}
	return s.options[name][0]
}

// codes are the exit codes that an option lists.
func (s *service) codes(name string) map[int]bool {
	s.t.Helper()
	codes := map[int]bool{}
	for _, f := range strings.Fields(s.one(name)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			s.t.Fatalf("%s: %v", name, err)
		}
		codes[n] = true
	}
	return codes
}

// place puts a value where the test has its directories.
func (s *service) place(value, instance string) string {
	return strings.NewReplacer(
		"%i", instance, "%H", "host", "/usr/local/bin/streamworker", binary,
		"/etc/streamworker", filepath.Join(s.root, "etc"), "/var/lib/streamworker", filepath.Join(s.root, "var"),
	).Replace(value)
}

// environment is what the commands of an instance get, with its environment file as it is now.
func (s *service) environment(instance string) map[string]string {
	s.t.Helper()
	env := map[string]string{}
	lines := s.options["Environment"]
	file := s.place(strings.TrimPrefix(s.one("EnvironmentFile"), "-"), instance)
	if data, err := os.ReadFile(file); err == nil {
		lines = append(lines[:len(lines):len(lines)], strings.Split(string(data), "\n")...)
	} else if !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	for _, line := range lines {
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			env[name] = s.place(value, instance)
		}
	}
	return env
}

// command is ExecStart or ExecStop of an instance.
func (s *service) command(option, instance string) *exec.Cmd {
	s.t.Helper()
	line := strings.TrimPrefix(s.one(option), "-")
	if strings.ContainsAny(line, `"'\`) {
		s.t.Fatalf("%s has quotes, which this test does not read: %s", option, line)
	}
	env := s.environment(instance)
	words := strings.Fields(s.place(line, instance))
	for i, w := range words {
		words[i] = os.Expand(w, func(name string) string {
			value, ok := env[name]
			if !ok {
				s.t.Errorf("%s: %s is not set", option, name)
			}
			return value
		})
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.root}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	return cmd
}

// running is an instance that was started as systemd does.
type running struct {
	t        *testing.T
	cmd      *exec.Cmd
	notify   *net.UnixConn
	ended    chan struct{}
	mu       sync.Mutex
	said     []string // to systemd
	log      strings.Builder
	listened chan struct{}
}

// start runs ExecStart with a socket for what the instance tells systemd.
func (s *service) start(instance string) *running {
	s.t.Helper()
	path := filepath.Join(s.root, instance+".notify")
	_ = os.Remove(path)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		s.t.Fatal(err)
	}
	r := &running{t: s.t, cmd: s.command("ExecStart", instance), notify: conn, ended: make(chan struct{}), listened: make(chan struct{})}
	r.cmd.Env = append(r.cmd.Env, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=400000") // a look every 200 ms
	if err := os.MkdirAll(filepath.Join(s.root, "var", instance), 0o700); err != nil {
		s.t.Fatal(err)
	}
	out, err := r.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go r.listen()
	go func() {
		defer close(r.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.mu.Lock()
			r.log.WriteString(lines.Text() + "\n")
			r.mu.Unlock()
		}
		_ = r.cmd.Wait() // its exit code says the same
	}()
	s.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
		_ = conn.Close()
		<-r.listened
		if s.t.Failed() {
			s.t.Logf("%s told systemd %q and logged:\n%s", instance, r.told(), r.log.String())
		}
	})
	return r
}

func (r *running) listen() {
	defer close(r.listened)
	buf := make([]byte, 1<<16)
	for {
		n, err := r.notify.Read(buf)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.said = append(r.said, strings.Split(string(buf[:n]), "\n")...)
		r.mu.Unlock()
	}
}

func (r *running) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said[:len(r.said):len(r.said)]
}

// awaitTold waits until systemd was told something that begins so.
func (r *running) awaitTold(prefix string) {
	r.t.Helper()
	await(r.t, prefix, func() bool {
		for _, s := range r.told() {
			if strings.HasPrefix(s, prefix) {
				return true
			}
		}
		select {
		case <-r.ended:
			r.t.Fatalf("ended with %d before it told systemd %s", r.cmd.ProcessState.ExitCode(), prefix)
		default:
		}
		return false
	})
}

// ends waits for the end of the process and checks its exit code.
func (r *running) ends(want int) {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(2 * time.Minute):
		r.t.Fatal("still running")
	}
	if got := r.cmd.ProcessState.ExitCode(); got != want {
		r.t.Errorf("exit code %d, want %d", got, want)
	}
}

// stop runs ExecStop and returns its exit code.
func (s *service) stop(instance string) int {
	s.t.Helper()
	cmd := s.command("ExecStop", instance)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	s.t.Logf("ExecStop of %s: %s", instance, out)
	return cmd.ProcessState.ExitCode()
}

func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}
