package command

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/streamworker/streamworker/pkg/control"
)

// notifier tells systemd how the instance is (sd_notify). Without NOTIFY_SOCKET in the environment it does nothing.
type notifier struct {
	send     func(state string) (sent bool, err error)
	log      *slog.Logger
	ready    bool
	stopping bool
	text     string // sent last
}

func newNotifier(log *slog.Logger) *notifier {
	return &notifier{
		send: func(state string) (bool, error) { return daemon.SdNotify(false, state) },
		log:  log.With("component", "systemd"),
	}
}

// An instance is looked at this often, or twice in the time that the watchdog gives, if that is shorter.
const notifyInterval = time.Second

// extension is what a start or a drain that goes on asks for with each look: systemd ends one that is silent for so long.
const extension = 30 * time.Second

// interval is the time between two looks.
func (n *notifier) interval() time.Duration {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("the watchdog's time cannot be read", "error", err)
	}
	if watchdog > 0 {
		return min(notifyInterval, watchdog/2)
	}
	return notifyInterval
}

// observed is an instance at one moment.
type observed struct {
	status      control.Status
	live, ready bool
}

// observe tells what is new. An instance that is not live gets neither its watchdog's beat nor more time.
func (n *notifier) observe(o observed) {
	var say []string
	if o.ready && !n.ready {
		n.ready = true
		say = append(say, daemon.SdNotifyReady)
	}
	text := statusText(o)
	if text != n.text {
		n.text = text
		say = append(say, "STATUS="+text)
	}
	if o.live {
		say = append(say, daemon.SdNotifyWatchdog)
		if !n.ready || n.stopping && o.status.State == control.Draining {
			say = append(say, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extension.Microseconds()))
		}
	}
	n.tell(say...)
}

// stops tells that the process is about to end, or that it drains before it does.
func (n *notifier) stops() {
	if !n.stopping {
		n.stopping = true
		n.tell(daemon.SdNotifyStopping)
	}
}

func (n *notifier) tell(say ...string) {
	if len(say) == 0 {
		return
	}
	if _, err := n.send(strings.Join(say, "\n")); err != nil {
		n.log.Debug("systemd was not told", "error", err)
	}
}

// statusText is the line that systemctl status shows.
func statusText(o observed) string {
	s := o.status
	text := string(s.State)
	switch {
	case !o.live:
		text += "; the task manager hangs"
	case s.State == control.Starting:
		text += ": no lease of the group yet"
	case s.State == control.Stopping, s.State == control.Drained:
		return text
	}
	var parts []string
	for _, role := range []struct {
		n    int
		name string
	}{{len(s.Active), "active"}, {len(s.Learning), "learning"}, {len(s.Standby), "standby"}, {s.FailedTasks, "cannot go on"}} {
		if role.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", role.n, role.name))
		}
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if s.State == control.Running && !o.ready {
		text += " (not ready)"
	}
	return text
}
