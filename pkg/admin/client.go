package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/streamworker/streamworker/pkg/leave"
)

// Client speaks with the instance that uses a state directory on this host.
type Client struct {
	dir  string
	http *http.Client
}

// NewClient connects at each request. Close ends idle connections.
func NewClient(dir string) (*Client, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &Client{dir: dir, http: &http.Client{
		Transport: &http.Transport{DialContext: dial},
		Timeout:   5 * time.Second, // the instance answers within one, if the host gives it the time
	}}, nil
}

// Close ends the client's connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// LocalURL is what the paths of the instance are below, for HTTP.
const LocalURL = "http://instance"

// HTTP sends requests to the instance, whatever host their URL names.
func (c *Client) HTTP() *http.Client { return c.http }

// Status asks for the instance's status, and for the group's as far as the instance can tell.
func (c *Client) Status(ctx context.Context, group bool) (Reply, error) {
	var r Reply
	url := "/status"
	if group {
		url += "?group"
	}
	err := c.do(ctx, http.MethodGet, url, nil, &r)
	return r, err
}

// Leave marks the instance as leaving; by says who asks.
func (c *Client) Leave(ctx context.Context, d leave.Deadline, by string) error {
	return c.do(ctx, http.MethodPost, "/leave", Order{Deadline: d, By: by}, nil)
}

// Cancel takes the mark back.
func (c *Client) Cancel(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/cancel", nil, nil)
}

// Stop makes the instance end; how is keep, release or drain, or empty for what SIGTERM does; by says who asks.
func (c *Client) Stop(ctx context.Context, how, by string) error {
	return c.do(ctx, http.MethodPost, "/stop", StopOrder{How: how, By: by}, nil)
}

// Live asks whether the instance goes on.
func (c *Client) Live(ctx context.Context) error { return c.probe(ctx, "/livez") }

// Ready asks whether each of the instance's tasks runs.
func (c *Client) Ready(ctx context.Context) error { return c.probe(ctx, "/readyz") }

// ErrUnhealthy is wrapped by the errors of Live and Ready when the instance says no.
var ErrUnhealthy = errors.New("the instance answers")

func (c *Client) probe(ctx context.Context, url string) error {
	resp, err := c.request(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("read the answer of the instance of %s: %w", c.dir, err)
	}
	return fmt.Errorf("%w: %s", ErrUnhealthy, strings.TrimSpace(string(body)))
}

func (c *Client) do(ctx context.Context, method, url string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := c.request(ctx, method, url, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		var f failure
		if json.NewDecoder(resp.Body).Decode(&f) != nil || f.Error == "" {
			return fmt.Errorf("the instance of %s answers %s", c.dir, resp.Status)
		}
		return fmt.Errorf("the instance of %s answers: %s", c.dir, f.Error)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read the answer of the instance of %s: %w", c.dir, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, url string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, LocalURL+url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("%w: %s", ErrNotRunning, c.dir)
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("this user may not ask the instance of %s: ask as the user that runs it, or as root: %w", c.dir, fs.ErrPermission)
		}
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() {
			return nil, fmt.Errorf("the instance of %s does not answer within %s: it hangs, or this host is overloaded: %w", c.dir, c.http.Timeout, os.ErrDeadlineExceeded)
		}
		return nil, fmt.Errorf("ask the instance of %s: %w", c.dir, err)
	}
	return resp, nil
}
