package reset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/state"
)

var (
	// ErrAlive is returned when an instance of the application is alive.
	ErrAlive = errors.New("the application is running")
	// ErrIncomplete is returned by Run when some steps were done and others were not.
	ErrIncomplete = errors.New("the reset is not complete")
)

// Resetter resets one application.
type Resetter struct {
	cfg *config.Config
	adm *kadm.Client
	bus *control.Bus
	now func() time.Time
}

// New uses a client that was made with control.Opts among its options, and leaves closing it to the caller.
func New(cfg *config.Config, cl *kgo.Client, bus *control.Bus) *Resetter {
	return &Resetter{cfg: cfg, adm: kadm.NewClient(cl), bus: bus, now: time.Now}
}

// Run does the steps of a plan and calls done after each. If local state is among them, the directory is held from the first
// step to the last: no instance starts on it. After an error or the end of ctx, p says which steps were done, and if there are any,
// so does the error, as ErrIncomplete. What others have deleted counts as done.
func (r *Resetter) Run(ctx context.Context, p *Plan, done func(Step)) (err error) {
	if len(p.Steps) == 0 {
		return nil
	}
	var dir *state.Directory
	if slices.ContainsFunc(p.Steps, Step.local) {
		if dir, err = state.TakeDirectory(p.StateDir, r.now()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
	}
	if err := r.dead(ctx); err != nil { // time has passed since the plan
		return err
	}
	for i := range p.Steps {
		if err := r.step(ctx, p.Steps[i], dir); err != nil {
			return incomplete(p, err)
		}
		p.Steps[i].Done = true
		done(p.Steps[i])
	}
	return r.stillDead(ctx)
}

func (r *Resetter) step(ctx context.Context, s Step, dir *state.Directory) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	switch s.Kind {
	case Group:
		return r.deleteGroup(ctx, s.Name)
	case Topic:
		return r.deleteTopic(ctx, s.Name)
	case Task:
		return dir.RemoveTask(s.Name)
	case Journal:
		return dir.RemoveFile(s.Name)
	}
	return fmt.Errorf("unknown step %s", s.Kind)
}

// incomplete says what was done and what is left.
func incomplete(p *Plan, cause error) error {
	var done, left []string
	for _, s := range p.Steps {
		if s.Done {
			done = append(done, s.String())
		} else {
			left = append(left, s.String())
		}
	}
	if len(done) == 0 {
		return cause
	}
	return fmt.Errorf("%w: %w: done: %s; left: %s: correct what is wrong and run it again, it goes on from here; start no instance before, its results would be wrong",
		ErrIncomplete, cause, strings.Join(done, ", "), strings.Join(left, ", "))
}

// String names what the step deletes.
func (s Step) String() string { return string(s.Kind) + " " + s.Name }

// local tells whether the step needs the state directory.
func (s Step) local() bool { return s.Kind == Task || s.Kind == Journal }

// deleteGroup deletes the group with its offsets, in one step. The broker refuses it while the group has members.
func (r *Resetter) deleteGroup(ctx context.Context, name string) error {
	resp, err := r.adm.DeleteGroup(ctx, name)
	switch {
	case err == nil, errors.Is(err, kerr.GroupIDNotFound):
		return nil
	case errors.Is(err, kerr.NonEmptyGroup):
		return fmt.Errorf("%w: an instance has joined group %s meanwhile: stop it", ErrAlive, name)
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return denied("group "+name, err)
	}
	return fmt.Errorf("deleting group %s: %w%s", name, err, said(resp.ErrMessage))
}

// deleteTopic deletes a topic and waits until the brokers do not know it any more, so that the next start makes a new one.
func (r *Resetter) deleteTopic(ctx context.Context, name string) error {
	resp, err := r.adm.DeleteTopic(ctx, name)
	switch {
	case err == nil, errors.Is(err, kerr.UnknownTopicOrPartition):
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return denied("topic "+name, err)
	case errors.Is(err, kerr.TopicDeletionDisabled):
		return fmt.Errorf("deleting topic %s: %w: the brokers have delete.topic.enable=false: set it to true", name, err)
	default:
		return fmt.Errorf("deleting topic %s: %w%s", name, err, said(resp.ErrMessage))
	}
	for {
		found, err := r.adm.ListTopics(ctx, name)
		if err != nil {
			return fmt.Errorf("waiting for topic %s to be gone: %w", name, err)
		}
		if t, ok := found[name]; !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for topic %s to be gone: %w", name, context.Cause(ctx))
		}
	}
}

// stillDead looks for an instance that was started in the midst of it: its results mix old and new.
func (r *Resetter) stillDead(ctx context.Context) error {
	if err := r.dead(ctx); err != nil {
		return fmt.Errorf("everything was deleted, but perhaps not before an instance started: stop it and run this again: %w", err)
	}
	return nil
}

func denied(resource string, cause error) error {
	return fmt.Errorf("not authorized to DELETE %s (%w): grant this client's principal the ACL operation DELETE on it, e.g. with kafka-acls", resource, cause)
}

func said(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
