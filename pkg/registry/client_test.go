package registry

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/streamworker/streamworker/pkg/topology/format"
)

const point = `{"type":"record","name":"Point","fields":[{"name":"x","type":"long"}]}`

// served is a registry with one schema, and a client of it whose clock the test moves.
func served(t *testing.T, opts ...srfake.Option) (*srfake.Registry, *Client, *time.Time) {
	t.Helper()
	fake := srfake.New(opts...)
	t.Cleanup(fake.Close)
	fake.SeedSchema("points-value", 1, 7, sr.Schema{Schema: point})
	c := New(Settings{URLs: []string{fake.URL()}})
	now := time.Now()
	c.now = func() time.Time { return now }
	return fake, c, &now
}

// unavailable checks that err blames the registry, with all of the words.
func unavailable(t *testing.T, err error, words ...string) {
	t.Helper()
	var away *format.Unavailable
	if !errors.As(err, &away) {
		t.Fatalf("got %v (%T), want an *Unavailable", err, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func TestSchemaIsRemembered(t *testing.T) {
	fake, c, _ := served(t)
	for range 2 {
		s, err := c.Schema(7)
		if want := (format.Schema{Type: format.AvroSchema, Text: point}); err != nil || !reflect.DeepEqual(s, want) {
			t.Fatalf("got %+v, %v; want %+v", s, err, want)
		}
		fake.Close()
	}
}

func TestSubjects(t *testing.T) {
	_, c, _ := served(t)
	if id, s, err := c.Latest("points-value"); id != 7 || s.Text != point || err != nil {
		t.Errorf("the latest is %d, %v, %v", id, s, err)
	}
	if _, _, err := c.Latest("other"); !errors.Is(err, format.ErrNoSchema) {
		t.Errorf("the latest of no subject: %v", err)
	}
	s := format.Schema{Type: format.AvroSchema, Text: point}
	if id, err := c.ID("points-value", s, false); id != 7 || err != nil {
		t.Errorf("got %d, %v", id, err)
	}
	s.Text = strings.Replace(point, "Point", "Punkt", 1)
	if _, err := c.ID("new-value", s, false); !errors.Is(err, format.ErrNoSchema) {
		t.Errorf("a schema that is not registered: %v", err)
	}
	id, err := c.ID("new-value", s, true)
	if err != nil || id == 7 {
		t.Fatalf("got %d, %v", id, err)
	}
	if again, err := c.ID("new-value", s, false); again != id || err != nil {
		t.Errorf("registered as %d, found as %d, %v", id, again, err)
	}
}

func TestReferences(t *testing.T) {
	fake, c, _ := served(t)
	fake.SeedSchema("a", 1, 10, sr.Schema{Type: sr.TypeProtobuf, Schema: "a"})
	fake.SeedSchema("b", 1, 11, sr.Schema{Type: sr.TypeProtobuf, Schema: "b", References: []sr.SchemaReference{{Name: "a.proto", Subject: "a", Version: 1}}})
	refs := []sr.SchemaReference{{Name: "b.proto", Subject: "b", Version: 1}, {Name: "a.proto", Subject: "a", Version: 1}}
	fake.SeedSchema("c", 1, 12, sr.Schema{Type: sr.TypeProtobuf, Schema: "c", References: refs})
	got, err := c.Schema(12)
	want := format.Schema{Type: format.ProtobufSchema, Text: "c", References: []format.Reference{{Name: "a.proto", Text: "a"}, {Name: "b.proto", Text: "b"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// TestMissing asks for an id that is not there, and becomes it later.
func TestMissing(t *testing.T) {
	fake, c, now := served(t)
	asked := 0
	fake.Intercept(func(http.ResponseWriter, *http.Request) bool { asked++; return false })
	for range 3 {
		if _, err := c.Schema(8); !errors.Is(err, format.ErrNoSchema) {
			t.Fatalf("got %v", err)
		}
	}
	if asked != 1 {
		t.Errorf("the registry was asked %d times", asked)
	}
	fake.SeedSchema("new", 1, 8, sr.Schema{Schema: point})
	*now = now.Add(missingFor)
	if s, err := c.Schema(8); err != nil || s.Text != point {
		t.Errorf("got %v, %v", s, err)
	}
}

// TestAnswers holds that only the registry's own word makes a schema one that does not exist.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		words  []string // of the error; nil: there is no such schema
	}{
		{404, `{"error_code":40403,"message":"Schema not found"}`, nil},
		{404, `<html>Not here</html>`, []string{"answers 404", "Not here", "schema_registry.url"}},
		{404, `{"error_code":404,"message":"HTTP 404 Not Found"}`, []string{"answers 404"}},
		{401, `{"error_code":401,"message":"Unauthorized"}`, []string{"answers 401", "Unauthorized", "schema_registry.username"}},
		{403, `{"error_code":40301,"message":"denied"}`, []string{"answers 403", "denied", "right to read"}},
		{429, "slow down", []string{"answers 429", "slow down"}},
		{500, `{"error_code":50001,"message":"Error in the backend"}`, []string{"answers 500", "backend"}},
		{200, "no JSON", []string{"unable to decode"}},
	} {
		fake, c, _ := served(t)
		fake.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(tt.body))
			return true
		})
		_, err := c.Schema(7)
		if tt.words != nil {
			unavailable(t, err, append(tt.words, fake.URL())...)
		} else if !errors.Is(err, format.ErrNoSchema) {
			t.Errorf("%d %s: got %v, want that there is none", tt.status, tt.body, err)
		}
	}
}

// TestOutage leaves a registry alone for growing pauses, and finds it again.
func TestOutage(t *testing.T) {
	fake, c, now := served(t)
	asked, down := 0, true
	fake.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if asked++; down {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return down
	})
	for i, pause := 0, pauseFirst; i < 8; i++ {
		_, err := c.Schema(7)
		unavailable(t, err, "answers 503")
		_, err = c.Schema(9) // not asked
		unavailable(t, err, "answers 503")
		if asked != i+1 {
			t.Fatalf("asked %d times after %d pauses", asked, i)
		}
		*now = now.Add(pause)
		pause = min(2*pause, pauseMost)
	}
	down = false
	if _, err := c.Schema(7); err != nil {
		t.Errorf("after the outage: %v", err)
	}
	if _, err := c.Schema(9); !errors.Is(err, format.ErrNoSchema) {
		t.Errorf("after the outage: %v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	fake, c, _ := served(t)
	if err := c.Reach(); err != nil {
		t.Errorf("while it answers: %v", err)
	}
	fake.Close()
	_, err := c.Schema(7)
	unavailable(t, err, "schema registry "+fake.URL(), "refused")
}

func TestSecondAddress(t *testing.T) {
	fake, _, _ := served(t)
	gone := srfake.New()
	gone.Close()
	if _, err := New(Settings{URLs: []string{gone.URL(), fake.URL()}}).Schema(7); err != nil {
		t.Error(err)
	}
}

func TestBasicAuth(t *testing.T) {
	fake, c, now := served(t, srfake.WithAuth("Basic c3c6c2VjcmV0")) // sw:secret
	_, err := c.Schema(7)
	unavailable(t, err, "answers 401")
	file := filepath.Join(t.TempDir(), "password")
	c = New(Settings{URLs: []string{fake.URL()}, Username: "sw", PasswordFile: file})
	c.now = func() time.Time { return *now }
	_, err = c.Schema(7)
	unavailable(t, err, settingPasswordFile, file)
	for _, password := range []string{"wrong", "secret\n"} { // the file is read again after a failure
		if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
		*now = now.Add(pauseMost)
		_, err = c.Schema(7)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(srfake.NewRegistry().Handler())
	defer server.Close()
	_, err := New(Settings{URLs: []string{server.URL}}).Schema(7)
	unavailable(t, err, "certificate")
	s := Settings{URLs: []string{server.URL}}
	s.TLS.Enabled, s.TLS.CA = true, filepath.Join(t.TempDir(), "ca.pem")
	_, err = New(s).Schema(7)
	unavailable(t, err, "schema_registry.tls.ca")
	if found := s.Check(time.Now()); len(found) != 1 || found[0].Setting != "schema_registry.tls.ca" {
		t.Errorf("the check finds %v", found)
	}
	if err := os.WriteFile(s.TLS.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(s).Schema(7); !errors.Is(err, format.ErrNoSchema) {
		t.Errorf("got %v, want the answer of an empty registry", err)
	}
}

func TestSecretInClear(t *testing.T) {
	for url, want := range map[string]bool{"http://registry:8081": true, "https://registry:8081": false, "http://localhost:8081": false, "http://127.0.0.1:8081": false} {
		if got := (Settings{URLs: []string{url}, Username: "sw"}).SecretInClear(); got != want {
			t.Errorf("%s: %v", url, got)
		}
		if (Settings{URLs: []string{url}}).SecretInClear() {
			t.Errorf("%s: there is no secret", url)
		}
	}
}
