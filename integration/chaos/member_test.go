//go:build integration && linux

package chaos

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// member is one instance through all its restarts.
type member struct {
	id      string
	w       *world
	network *harness.Namespace // nil: that of the host
	proxies []*harness.Proxy   // one for each broker
	disk    *harness.Disk      // nil: that of the host
	dir     string             // of the state

	lives []*life
	want  bool   // it is started again when it ends
	mode  string // of the next start
	fresh bool   // likewise
}

// life is one process of a member.
type life struct {
	*harness.Process
	m      *member
	mode   string
	asked  bool // to end
	killed bool
	ended  time.Time
}

// newMember makes the surroundings of an instance: a network whose only way to the brokers are proxies, and a disk.
func newMember(w *world, id string) *member {
	w.t.Helper()
	m := &member{id: id, w: w, dir: filepath.Join(w.app.Dir, "state", id)}
	if network, err := harness.NewNamespace(); err != nil {
		w.lack("cuts", err)
	} else {
		m.network = network
		w.t.Cleanup(network.Close)
		for _, broker := range strings.Split(w.cluster.Address, ",") {
			var l net.Listener
			if err := network.Do(func() (err error) { l, err = net.Listen("tcp", broker); return err }); err != nil {
				w.t.Fatal(err)
			}
			p := harness.NewProxy(l, broker)
			w.t.Cleanup(p.Close)
			m.proxies = append(m.proxies, p)
		}
	}
	disk, err := harness.NewDisk(filepath.Join(w.app.Dir, id+".image"), filepath.Join(w.app.Dir, "disk-"+id))
	if err != nil {
		w.lack("slow disks", err)
		return m
	}
	m.disk, m.dir = disk, filepath.Join(disk.Dir, "state")
	w.t.Cleanup(func() {
		if err := disk.Remove(); err != nil {
			w.t.Error(err)
		}
	})
	return m
}

// Do starts a process in the member's network.
func (m *member) Do(f func() error) error {
	if m.network == nil {
		return f()
	}
	return m.network.Do(f)
}

// now is the present process; nil: none runs.
func (m *member) now() *life {
	if n := len(m.lives); n > 0 && m.lives[n-1].Running() {
		return m.lives[n-1]
	}
	return nil
}

// ask makes sure that the member runs, and is started again as told if it ends.
func (m *member) ask(mode string, fresh bool) {
	m.want, m.mode, m.fresh = true, mode, fresh
	if m.now() == nil {
		m.start()
	}
}

func (m *member) start() {
	if m.fresh {
		if err := os.RemoveAll(m.dir); err != nil {
			m.w.t.Errorf("removing the state of %s: %v", m.id, err)
		}
		m.fresh = false
	}
	p := m.w.app.StartIn(m, m.id, "-c", m.w.config(m.mode), "--state-dir", m.dir)
	p.Name, p.Quiet = fmt.Sprintf("%s#%d", m.id, len(m.lives)+1), true
	l := &life{Process: p, m: m, mode: m.mode}
	m.lives = append(m.lives, l)
	m.w.meter.follow(p.Pid(), "instances")
	go func() {
		<-p.Done()
		l.ended = time.Now()
		m.w.ended <- l
	}()
}

// over judges the end of a process.
func (l *life) over(t testing.TB) {
	code := l.Wait(time.Minute)
	switch {
	case l.killed:
	case code == 10 || code == 11: // a leave, maybe one that was asked for late
		l.m.w.say("%s has left, exit code %d", l.Name, code)
	case code == 0 && l.asked:
		l.m.w.say("%s has stopped", l.Name)
	default:
		t.Errorf("%s has ended by itself with exit code %d; its last words: %s", l.Name, code, tail(l.Output(), 2000))
	}
	if l.m.want && l.m.lives[len(l.m.lives)-1] == l {
		l.m.start()
	}
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// step does what a step says.
func (m *member) step(s Step) {
	l := m.now()
	if s.Op == Start {
		m.ask(s.Mode, s.Arg == ArgFresh)
		return
	}
	if s.Op == Heal {
		for _, p := range m.proxies {
			p.Heal(s.Arg == ArgDrop)
		}
		return
	}
	if l == nil {
		m.w.say("  %s does not run", m.id)
		return
	}
	switch s.Op {
	case Kill:
		m.want, l.asked, l.killed = false, true, true
		l.Kill()
	case Stop:
		l.Signal(syscall.SIGSTOP)
	case Cont:
		l.Signal(syscall.SIGCONT)
	case Term:
		m.want, l.asked = false, true
		l.Signal(syscall.SIGTERM)
	case Leave:
		m.want, l.asked = false, true
		flags := []string{"--instance", m.id}
		if s.Arg != "" {
			flags = append(flags, s.Arg)
		}
		m.w.command("leave", flags...)
	case Cancel:
		m.want = true
		m.w.command("leave", "--instance", m.id, "--cancel")
	case Cut:
		for _, p := range m.proxies {
			if s.Arg == ArgRefuse {
				p.Refuse()
			} else {
				p.Hold(s.Arg != ArgAnswers, s.Arg != ArgRequests)
			}
		}
	case SlowFor:
		m.slow(s.For)
	default: // done above, or of a broker
	}
}

// slow lets the disk hang again and again.
func (m *member) slow(length time.Duration) {
	if m.disk == nil {
		return
	}
	m.w.background.Go(func() {
		for begin := time.Now(); time.Since(begin) < length; time.Sleep(100 * time.Millisecond) {
			if err := m.disk.Hang(500 * time.Millisecond); err != nil {
				m.w.t.Errorf("the disk of %s: %v", m.id, err)
				return
			}
		}
	})
}
