package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Orders reach every instance of the group.
type Orders interface {
	PutMark(ctx context.Context, m control.Mark) error
	Cancel(ctx context.Context, instance string, inc assign.Incarnation) error
}

var _ Orders = (*control.Bus)(nil)

// Order is the body of a request to let an instance leave, or to take that back.
type Order struct {
	Instance    string `json:"instance"`
	Incarnation string `json:"incarnation"` // as the overview has it: a restart is not meant
	Timeout     string `json:"timeout"`     // of a leave: a duration, "none", or "" for the instance's own scale_down_timeout
}

const (
	maxOrder     = 4 << 10
	orderTimeout = 5 * time.Second
)

// refusal is an error of the one who asks.
type refusal struct {
	code int
	text string
}

func (r refusal) Error() string { return r.text }

// order checks a request, and gives the order with the run of the instance that it means.
func (d *Dashboard) order(w http.ResponseWriter, r *http.Request, give func(context.Context, Order, control.Target, string) error) {
	ctx, cancel := context.WithTimeout(r.Context(), orderTimeout)
	defer cancel()
	err := d.take(ctx, w, r, give)
	var refused refusal
	switch {
	case err == nil:
		d.write(w, http.StatusAccepted, struct{}{})
	case errors.As(err, &refused):
		d.write(w, refused.code, failure{refused.text})
	default:
		d.write(w, http.StatusServiceUnavailable, failure{err.Error()})
	}
}

func (d *Dashboard) take(ctx context.Context, w http.ResponseWriter, r *http.Request, give func(context.Context, Order, control.Target, string) error) error {
	if d.cfg.Orders == nil {
		return refusal{http.StatusForbidden, "this dashboard only shows; to let it act, set admin.allow_actions: true"}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refusal{http.StatusUnsupportedMediaType, "send application/json"}
	}
	var o Order
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			return refusal{http.StatusRequestEntityTooLarge, "the order is too long"}
		}
		return refusal{http.StatusBadRequest, fmt.Sprintf("the order cannot be read: %v", err)}
	}
	all, _ := d.statuses(ctx)
	target, err := pick(all, o, time.Now())
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	by := fmt.Sprintf("the dashboard of %s, from %s", all[0].Instance, host)
	if err := give(ctx, o, target, by); err != nil {
		return err
	}
	d.log.Info("an order was given", "order", r.URL.Path, "to", target.Instance, "from", host)
	return nil
}

// pick finds the run that an order means.
func pick(all []control.Status, o Order, now time.Time) (control.Target, error) {
	i := slices.IndexFunc(all, func(s control.Status) bool { return s.Instance == o.Instance })
	switch {
	case i < 0:
		return control.Target{}, refusal{http.StatusNotFound, "there is no instance of that name"}
	case all[i].Left != "" || all[i].Stale(now):
		return control.Target{}, refusal{http.StatusConflict, "the instance is gone"}
	case all[i].Incarnation.String() != o.Incarnation:
		return control.Target{}, refusal{http.StatusConflict, "the instance was started anew meanwhile: look again"}
	}
	return control.Target{Instance: o.Instance, Incarnation: all[i].Incarnation}, nil
}

func (d *Dashboard) leave(ctx context.Context, o Order, t control.Target, by string) error {
	now := time.Now()
	m := control.Mark{Instance: t.Instance, Incarnation: t.Incarnation, By: by, AtMs: now.UnixMilli()}
	switch o.Timeout {
	case "":
	case "none":
		m.DeadlineMs = control.NoDeadline
	default:
		timeout, err := time.ParseDuration(o.Timeout)
		if err != nil || timeout <= 0 {
			return refusal{http.StatusBadRequest, "timeout: want a time like 90s or 10m, or none"}
		}
		m.DeadlineMs = now.Add(timeout).UnixMilli()
	}
	return d.cfg.Orders.PutMark(ctx, m)
}

func (d *Dashboard) cancel(ctx context.Context, _ Order, t control.Target, _ string) error {
	return d.cfg.Orders.Cancel(ctx, t.Instance, t.Incarnation)
}
