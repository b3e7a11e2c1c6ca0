package instance

import (
	"context"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/leave"
)

// The leave controller acts on the group and on the tasks through the running parts.
var (
	_ leave.Member = (*parts)(nil)
	_ leave.Tasks  = (*parts)(nil)
)

// SetLeaving puts the leaving mark into the reports to come; deadlineMs is in ms since the epoch, 0: none.
func (p *parts) SetLeaving(deadlineMs int64) { p.manager.SetLeaving(true, deadlineMs) }

// ClearLeaving takes the leaving mark out of the reports.
func (p *parts) ClearLeaving() { p.manager.SetLeaving(false, 0) }

// Leave leaves the group.
func (p *parts) Leave(ctx context.Context) error { return p.membership.Leave(ctx) }

// Remaining counts the tasks that are still to be given away.
func (p *parts) Remaining() int { return p.manager.Status().Held }

// Settled says whether the present plan knows of the leaving mark and leaves nothing here.
func (p *parts) Settled() bool { return p.manager.Status().Drained }

// GiveUp stops all tasks and commits what they have done.
func (p *parts) GiveUp(ctx context.Context) error {
	p.stopTasks()
	select {
	case <-p.tasksStopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// marks keeps this instance's mark in the control topic.
type marks struct {
	bus         *control.Bus
	id          string
	incarnation assign.Incarnation
}

var _ leave.Marks = marks{}

func (m marks) Put(ctx context.Context, mark leave.Mark) error {
	c := control.Mark{Instance: m.id, Incarnation: mark.Incarnation, By: mark.By, AtMs: time.Now().UnixMilli()}
	at, timed := mark.Deadline.Time()
	switch {
	case mark.Deadline == leave.Now:
		c.Now = true
	case mark.Deadline == leave.Never:
		c.DeadlineMs = control.NoDeadline
	case timed:
		c.DeadlineMs = at.UnixMilli()
	}
	return m.bus.PutMark(ctx, c)
}

func (m marks) Clear(ctx context.Context) error {
	return m.bus.Cancel(ctx, m.id, m.incarnation)
}

// deadlineOf is what a mark in the control topic asks for.
func deadlineOf(m control.Mark) leave.Deadline {
	switch {
	case m.Now:
		return leave.Now
	case m.DeadlineMs == control.NoDeadline:
		return leave.Never
	case m.DeadlineMs > 0:
		return leave.At(time.UnixMilli(m.DeadlineMs))
	}
	return leave.Default
}

// controlHandler acts on what the control topic says of this instance, and of others' joins.
func controlHandler(id string, own assign.Incarnation, ctl *leave.Controller, rejoin func()) control.Handler {
	return control.Handler{
		Mark: func(m control.Mark) {
			if m.Instance == id {
				ctl.Mark(leave.Mark{Incarnation: m.Incarnation, Deadline: deadlineOf(m), By: m.By})
			}
		},
		Cancel: func(instance string, inc assign.Incarnation) {
			if instance == id {
				ctl.Cancelled(inc)
			}
		},
		Hello: func(h control.Hello) {
			if h.Instance != id || h.Incarnation != own {
				rejoin()
			}
		},
	}
}
