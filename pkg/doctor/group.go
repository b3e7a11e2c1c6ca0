package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/kafka"
)

const (
	checkGroup  = "group"
	checkTasks  = "tasks"
	checkClocks = "clocks"
)

// group looks at the members and what they run.
func (d *Doctor) group(ctx context.Context) {
	name := d.cfg.Kafka.Group
	var g kadm.DescribedGroup
	err := kafka.Settled(ctx, func() error {
		groups, err := d.adm.DescribeGroups(ctx, name)
		if g = groups[name]; err == nil {
			err = g.Err
		}
		return err
	})
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		d.tell(checkRights, Failed, "not authorized to DESCRIBE group %s: grant this client's principal the ACL operations READ and DESCRIBE on it, e.g. with kafka-acls", name)
		return
	}
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		d.fail(checkGroup, fmt.Errorf("asking for group %s: %w", name, err))
		return
	}
	d.groupRights(ctx)
	switch {
	case err != nil:
		d.tell(checkGroup, OK, "%s does not exist yet", name)
	case len(g.Members) == 0:
		d.tell(checkGroup, OK, "%s has no members: no instance runs", name)
	case g.State != "Stable":
		d.tell(checkGroup, Warning, "%s has %d members and is in a round (%s): if it stays so, a member hangs; it is removed after kafka.rebalance_timeout (%s)",
			name, len(g.Members), g.State, d.cfg.Kafka.RebalanceTimeout)
	case g.Protocol != group.ProtocolName && d.cfg.RebalanceMode == config.Upgrading && slices.Contains(d.cfg.UpgradeFrom, g.Protocol):
		d.tell(checkGroup, OK, "%s speaks %s, as plain consumers are among its %d members: %s", name, g.Protocol, len(g.Members), clientIDs(g))
	case g.Protocol != group.ProtocolName:
		d.tell(checkGroup, Failed, "%s has other consumers in it (protocol %q: %s): give the application a group of its own by kafka.group, or end them; "+
			"to replace them one by one, set rebalance_mode: upgrading and upgrade_from", name, g.Protocol, clientIDs(g))
	default:
		d.tell(checkGroup, OK, "%s has %d members: %s", name, len(g.Members), clientIDs(g))
		d.agreement(g)
	}
}

func clientIDs(g kadm.DescribedGroup) string {
	ids := make([]string, len(g.Members))
	for i, m := range g.Members {
		ids[i] = m.ClientID
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}

// agreement compares the configurations that the members run with this one.
func (d *Doctor) agreement(g kadm.DescribedGroup) {
	var others, unreadable []string
	hashes := make(map[uint64]bool)
	for _, m := range g.Members {
		subscription, ok := m.Join.AsConsumer()
		if !ok {
			unreadable = append(unreadable, m.ClientID)
			continue
		}
		report, err := group.DecodeReport(subscription.UserData)
		if err != nil {
			unreadable = append(unreadable, m.ClientID)
			continue
		}
		hashes[report.ConfigHash] = true
		if d.needs != nil && report.ConfigHash != d.needs.Hash {
			others = append(others, report.Instance)
		}
	}
	slices.Sort(others)
	if len(unreadable) > 0 {
		d.tell(checkGroup, Warning, "members whose reports this version cannot read: %s: end the upgrade", strings.Join(unreadable, ", "))
	}
	switch {
	case len(hashes) > 1:
		d.tell(checkGroup, Failed, "members run different configurations of the application, or see different numbers of partitions; different from %s: %s: restart them with one file",
			d.cfg.Path, strings.Join(others, ", "))
	case len(others) > 0:
		d.tell(checkGroup, Warning, "all members run another configuration than %s, or have seen other numbers of partitions: restart them with this one, or use theirs", d.cfg.Path)
	case d.needs != nil:
		d.tell(checkGroup, OK, "all members run this configuration")
	}
}

// clockLimit is how far the clocks of an instance and a broker may be apart: a status may be on its way for so long. Ages in
// status and the gaps of handovers are measured across hosts.
const clockLimit = 5 * time.Second

// statuses looks at what instances have published last: tasks that cannot go on, and by the brokers' timestamps, the clocks.
func (d *Doctor) statuses(ctx context.Context) {
	statuses, err := control.NewBus(d.cl, d.cfg.App, slog.New(slog.DiscardHandler)).ReadStatuses(ctx)
	if errors.Is(err, control.ErrNoTopic) {
		d.skip("before an instance has run", checkTasks, checkClocks)
		return
	}
	if err != nil {
		d.fail(checkTasks, fmt.Errorf("reading the statuses of instances: %w", err))
		return
	}
	now := time.Now()
	view := control.NewView(d.cfg.App, statuses, now)
	for _, f := range view.Failed {
		d.tell(checkTasks, Failed, "task %s cannot go on on %s, %d attempts: %s", f.Task, f.Instance, f.Failures, f.Error)
	}
	if len(view.Failed) == 0 {
		d.tell(checkTasks, OK, "none of %d instances has a task that cannot go on", len(view.Instances))
	}
	d.clocks(statuses, now)
}

// clocks compares the time at which an instance wrote a status with the broker's at which it was appended.
func (d *Doctor) clocks(statuses []control.Status, now time.Time) {
	good := true
	for _, s := range statuses {
		if apart := s.Seen.Sub(time.UnixMilli(s.UpdatedMs)); s.UpdatedMs > 0 && apart.Abs() > clockLimit {
			good = false
			d.tell(checkClocks, Warning, "the clock of %s was %s off the broker's at %s: set both by NTP", s.Instance, apart.Abs().Round(time.Millisecond), s.Seen.Format(time.RFC3339))
		}
		if ahead := s.Seen.Sub(now); ahead > clockLimit {
			good = false
			d.tell(checkClocks, Warning, "this host's clock is at least %s behind the brokers': set both by NTP", ahead.Round(time.Millisecond))
		}
	}
	switch {
	case len(statuses) == 0:
		d.skip("before an instance has run", checkClocks)
	case good:
		d.tell(checkClocks, OK, "instances and brokers are at most %s apart", clockLimit)
	}
}
