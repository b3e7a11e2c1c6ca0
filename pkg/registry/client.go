package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/streamworker/streamworker/pkg/topology/format"
)

const (
	// requestTimeout bounds a request. The task that needs the schema does nothing else meanwhile.
	requestTimeout = 2 * time.Second

	// The registry is left alone for so long after a failure, doubled with each one.
	pauseFirst = 200 * time.Millisecond
	pauseMost  = 10 * time.Second

	// An id that the registry does not know is asked for again after this.
	missingFor = 10 * time.Second
)

// Error codes of the registry's API.
const (
	subjectNotFound = 40401
	versionNotFound = 40402
	schemaNotFound  = 40403
)

// Client is a format.Registry. Several goroutines may use it; one of them asks at a time.
type Client struct {
	settings Settings
	now      func() time.Time

	mu      sync.Mutex
	api     *sr.Client // nil: to be made, with the files as they are then
	schemas map[int]format.Schema
	missing map[int]time.Time // when the registry said so
	outage  error             // what the last request failed with; nil: it did not
	pause   time.Duration
	until   time.Time // nothing is asked before
}

var _ format.Registry = (*Client)(nil)

// New returns a client that has touched nothing yet.
func New(s Settings) *Client {
	return &Client{settings: s, now: time.Now, schemas: make(map[int]format.Schema), missing: make(map[int]time.Time)}
}

// Schema implements format.Registry.
func (c *Client) Schema(id int) (format.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.schemas[id]; ok {
		return s, nil
	}
	if at, ok := c.missing[id]; ok && c.now().Sub(at) < missingFor {
		return format.Schema{}, format.ErrNoSchema
	}
	var s format.Schema
	err := c.ask(func(ctx context.Context) error {
		found, err := c.api.SchemaByID(ctx, id)
		if err == nil {
			s, err = c.whole(ctx, found)
		}
		return err
	})
	switch {
	case err == nil:
		c.schemas[id] = s
		delete(c.missing, id)
	case errors.Is(err, format.ErrNoSchema):
		c.missing[id] = c.now()
	}
	return s, err
}

// Reach tells why the registry cannot be used; nil: it answers, be it that it has no schema 1.
func (c *Client) Reach() error {
	if _, err := c.Schema(1); !errors.Is(err, format.ErrNoSchema) {
		return err
	}
	return nil
}

// Latest implements format.Registry.
func (c *Client) Latest(subject string) (id int, s format.Schema, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.ask(func(ctx context.Context) error {
		const latest = -1
		found, err := c.api.SchemaByVersion(ctx, subject, latest)
		if err == nil {
			id = found.ID
			s, err = c.whole(ctx, found.Schema)
		}
		return err
	})
	return id, s, err
}

// ID implements format.Registry.
func (c *Client) ID(subject string, s format.Schema, register bool) (id int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := sr.Schema{Schema: s.Text, Type: typeOf(s.Type)}
	err = c.ask(func(ctx context.Context) error {
		found, err := c.api.LookupSchema(ctx, subject, text)
		id = found.ID
		if noSchema(err) && register {
			const next = -1
			id, err = c.api.RegisterSchema(ctx, subject, text, next, next)
		}
		return err
	})
	return id, err
}

// whole adds the schemas that s refers to.
func (c *Client) whole(ctx context.Context, s sr.Schema) (format.Schema, error) {
	out := format.Schema{Type: format.SchemaType(s.Type.String()), Text: s.Schema}
	seen := make(map[sr.SchemaReference]bool)
	var add func(refs []sr.SchemaReference) error
	add = func(refs []sr.SchemaReference) error {
		for _, r := range refs {
			if seen[r] {
				continue
			}
			seen[r] = true
			found, err := c.api.SchemaByVersion(sr.WithParams(ctx, sr.ShowDeleted), r.Subject, r.Version)
			if err != nil {
				return fmt.Errorf("version %d of subject %s, which it refers to: %s", r.Version, r.Subject, err.Error()) // even if there is none: the schema itself is there
			}
			if err := add(found.References); err != nil {
				return err
			}
			out.References = append(out.References, format.Reference{Name: r.Name, Text: found.Schema.Schema})
		}
		return nil
	}
	return out, add(s.References)
}

// ask lets do make requests, unless the registry is being left alone. c.mu must be held.
func (c *Client) ask(do func(ctx context.Context) error) error {
	if c.outage != nil && c.now().Before(c.until) {
		return &format.Unavailable{Err: c.outage}
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	err := c.connect()
	if err == nil {
		err = do(ctx)
	}
	switch {
	case err == nil:
		c.outage, c.pause = nil, 0
		return nil
	case noSchema(err):
		c.outage, c.pause = nil, 0
		return format.ErrNoSchema
	}
	c.outage, c.api = c.explain(err), nil
	c.pause = min(max(2*c.pause, pauseFirst), pauseMost)
	c.until = c.now().Add(c.pause)
	return &format.Unavailable{Err: c.outage}
}

// noSchema tells the registry's own answer that there is no such thing from that of anything else that answers at its address.
func noSchema(err error) bool {
	var answer *sr.ResponseError
	if !errors.As(err, &answer) || answer.StatusCode != http.StatusNotFound {
		return false
	}
	switch answer.ErrorCode {
	case subjectNotFound, versionNotFound, schemaNotFound:
		return true
	default:
		return false
	}
}

func (c *Client) explain(err error) error {
	where := strings.Join(c.settings.URLs, ", ")
	var answer *sr.ResponseError
	if !errors.As(err, &answer) {
		return fmt.Errorf("schema registry %s: %w", where, err)
	}
	hint := ""
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		hint = ": check schema_registry.username and password"
	case http.StatusForbidden:
		hint = ": grant this client the right to read schemas"
	case http.StatusNotFound:
		hint = ": does schema_registry.url point at a registry?"
	}
	const most = 200
	text := strings.Join(strings.Fields(err.Error()), " ")
	return fmt.Errorf("schema registry %s answers %d (%.*s)%s", where, answer.StatusCode, most, text, hint)
}

// connect makes the client of the API. After a failure it is made anew, as files may have changed.
func (c *Client) connect() error {
	if c.api != nil {
		return nil
	}
	s := c.settings
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // requests are rare
	if s.TLS.Enabled {
		cfg, err := s.TLS.Config(settingTLS, c.now())
		if err != nil {
			return err
		}
		transport.TLSClientConfig = cfg
	}
	opts := []sr.ClientOpt{sr.URLs(s.URLs...), sr.UserAgent("streamworker"), sr.HTTPClient(&http.Client{Transport: transport, Timeout: requestTimeout})}
	if s.Username != "" {
		password, err := s.password()
		if err != nil {
			return err
		}
		opts = append(opts, sr.BasicAuth(s.Username, password))
	}
	api, err := sr.NewClient(opts...)
	c.api = api
	return err
}

func typeOf(t format.SchemaType) sr.SchemaType {
	if t == format.ProtobufSchema {
		return sr.TypeProtobuf
	}
	return sr.TypeAvro
}
