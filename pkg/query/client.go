package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

var (
	// ErrDenied is returned by Ask when an instance does not let the client read.
	ErrDenied = errors.New("the instance does not let this client read")
	// ErrNobody is returned by Ask when no instance of the application can be asked.
	ErrNobody = errors.New("no instance can be asked: instances that serve an admin address (admin.listen) answer, and on its host each one does")
)

// Peer is an instance that can be asked.
type Peer struct {
	Instance string
	URL      string       // of its admin side
	HTTP     *http.Client // that gets there; it must not follow redirects
}

// Client finds the instance that can answer. Its fields are set by its maker; it may be used by several goroutines.
type Client struct {
	Peers    func(ctx context.Context) ([]Peer, error) // those of the group, in the order in which they are asked
	Token    string                                    // presented to all of them; "": none
	Patience time.Duration                             // with tasks on the move and instances that do not answer
	// Waiting is told why the answer is not there yet, and for how much longer it is waited for; nil: nobody is.
	Waiting func(why error, left time.Duration)
}

const (
	retryEvery  = 200 * time.Millisecond
	maxAnswer   = 16 << 20 // bytes: 1 MiB of rows, in JSON
	askDeadline = 3 * time.Second
)

// Ask puts a question to the group until there is an answer, or patience ends. A *Failure tells what is wrong with the question,
// and what kept it from being answered.
func (c *Client) Ask(ctx context.Context, store string, q url.Values, answer any) error {
	target := Path
	if store != "" {
		target += "/" + url.PathEscape(store)
	}
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	end := time.Now().Add(c.Patience)
	for {
		err := c.round(ctx, target, q.Get("stale") == "true", answer)
		left := time.Until(end)
		if err == nil || final(err) || left <= 0 {
			return err
		}
		if c.Waiting != nil && ctx.Err() == nil {
			c.Waiting(err, left)
		}
		select {
		case <-time.After(min(retryEvery, left)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// final says that asking again is of no use.
func final(err error) bool {
	var f *Failure
	if errors.As(err, &f) {
		return f.Code != CodeMoving && f.Code != CodeBusy && f.Code != CodeElsewhere
	}
	return errors.Is(err, ErrDenied) || errors.Is(err, ErrNobody)
}

// round asks one instance after the other until one answers, first those that others name as the one to ask. The error is
// the one that tells most: what an instance said outranks that another could not be reached.
func (c *Client) round(ctx context.Context, target string, stale bool, answer any) error {
	peers, err := c.Peers(ctx)
	if err != nil {
		return err
	}
	if len(peers) == 0 {
		return ErrNobody
	}
	var worst error
	for len(peers) > 0 {
		p := peers[0]
		peers = peers[1:]
		err := c.ask(ctx, p, target, answer)
		var f *Failure
		switch {
		case err == nil, ctx.Err() != nil, final(err):
			return err
		case !errors.As(err, &f): // not reached
			if worst == nil {
				worst = err
			}
			continue
		case f.Code == CodeElsewhere:
			i := slices.IndexFunc(peers, func(o Peer) bool { return o.Instance == f.Owner })
			if i >= 0 {
				owner := peers[i]
				peers = slices.Insert(slices.Delete(peers, i, i+1), 0, owner)
				continue
			}
			if worst == nil { // asked already, or without an address
				worst = err
			}
		default:
			worst = err
		}
		if !stale && f.Task != "" {
			return worst // the others would say the same
		}
	}
	return worst
}

// ask puts the question to one instance.
func (c *Client) ask(ctx context.Context, p Peer, target string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+target, nil)
	if err != nil {
		return fmt.Errorf("instance %s: %w", p.Instance, err)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := p.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("instance %s cannot be reached: %w", p.Instance, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("instance %s: reading its answer: %w", p.Instance, err)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		var f Failure
		_ = json.Unmarshal(body, &f) // without it the code has to do
		return fmt.Errorf("%w: %s at %s answers %s: %s", ErrDenied, p.Instance, p.URL, resp.Status, f.Message)
	}
	var who struct {
		Instance string `json:"instance"`
	}
	if json.Unmarshal(body, &who) != nil || who.Instance == "" {
		return fmt.Errorf("instance %s at %s answers %s, and nothing that can be read: does a streamworker with queries listen there?", p.Instance, p.URL, resp.Status)
	}
	if who.Instance != p.Instance {
		return fmt.Errorf("at %s, the address of instance %s, answers %s: set admin.advertise to an address that leads to it from here", p.URL, p.Instance, who.Instance)
	}
	if resp.StatusCode != http.StatusOK {
		f := new(Failure)
		if err := json.Unmarshal(body, f); err != nil || f.Code == "" {
			return fmt.Errorf("instance %s at %s answers %s", p.Instance, p.URL, resp.Status)
		}
		return f
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("instance %s: reading its answer: %w", p.Instance, err)
	}
	return nil
}
