package kafka

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// opening is what a client sends first to prove who it is.
func opening(t *testing.T, s SASL) (string, error) {
	t.Helper()
	_, message, err := NewConnector(Connection{SASL: s}, slog.New(slog.DiscardHandler)).mechanism.Authenticate(context.Background(), "")
	return string(message), err
}

func serveTokens(t *testing.T, answer http.HandlerFunc) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestTokenIsSharedUntilItExpires(t *testing.T) {
	for life, want := range map[int]int32{3600: 1, 1: 3} {
		url, asked := serveTokens(t, func(w http.ResponseWriter, r *http.Request) {
			if id, secret, _ := r.BasicAuth(); id != "me" || secret != "s3cret" || r.FormValue("scope") != "one two" {
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprintf(w, `{"access_token": "the-token", "token_type": "Bearer", "expires_in": %d}`, life)
		})
		c := NewConnector(Connection{SASL: SASL{
			Mechanism: OAuthBearer, Endpoint: TokenEndpoint{URL: url, ClientID: "me", ClientSecret: "s3cret", Scope: "one two"}, Extensions: map[string]string{"pool": "p-1"},
		}}, slog.New(slog.DiscardHandler))
		for range 3 {
			_, message, err := c.mechanism.Authenticate(t.Context(), "")
			if err != nil || !strings.Contains(string(message), "auth=Bearer the-token\x01pool=p-1\x01") {
				t.Fatalf("got %q, %v", message, err)
			}
		}
		if n := asked.Load(); n != want {
			t.Errorf("tokens for %d s: the endpoint was asked %d times, want %d", life, n, want)
		}
	}
}

func TestEndpointThatRefuses(t *testing.T) {
	for status, final := range map[int]bool{http.StatusUnauthorized: true, http.StatusServiceUnavailable: false} {
		url, _ := serveTokens(t, func(w http.ResponseWriter, r *http.Request) {
			_, secret, _ := r.BasicAuth()
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error": "no", "hint": %q}`, secret)
		})
		var logged bytes.Buffer
		c := NewConnector(Connection{SASL: SASL{Mechanism: OAuthBearer, Endpoint: TokenEndpoint{URL: url, ClientID: "me", ClientSecret: "s3cret"}}}, slog.New(slog.NewTextHandler(&logged, nil)))
		_, _, err := c.mechanism.Authenticate(t.Context(), "")
		text := fmt.Sprint(err)
		if !strings.Contains(text, url) || !strings.Contains(text, fmt.Sprint(status)) || strings.Contains(text, "s3cret") {
			t.Errorf("status %d: got %v", status, err)
		}
		if !strings.Contains(logged.String(), fmt.Sprint(status)) || strings.Contains(logged.String(), "s3cret") {
			t.Errorf("status %d: logged %s", status, logged.String())
		}
		// Running clients try on, and only the start gives up.
		if _, gotFinal := meaning(err); gotFinal != final || !kgo.IsRetryableBrokerErr(err) {
			t.Errorf("status %d: final is %v, want %v; retried: %v", status, gotFinal, final, kgo.IsRetryableBrokerErr(err))
		}
	}
}

func TestSecretFilesAreReadAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plain, bearer := SASL{Mechanism: Plain, Username: "me", PasswordFile: file}, SASL{Mechanism: OAuthBearer, TokenFile: file}
	_, err := opening(t, plain)
	if text := fmt.Sprint(err); !strings.Contains(text, "kafka.sasl.password_file") || !strings.Contains(text, file) {
		t.Errorf("a missing file: got %v", err)
	}
	write("\n")
	if _, err := opening(t, bearer); !strings.Contains(fmt.Sprint(err), "kafka.sasl.token_file: "+file+" is empty") {
		t.Errorf("an empty file: got %v", err)
	}
	for _, secret := range []string{"one", "two"} {
		write(secret + "\n")
		if message, err := opening(t, plain); err != nil || message != "\x00me\x00"+secret {
			t.Errorf("got %q, %v", message, err)
		}
		if message, err := opening(t, bearer); err != nil || !strings.Contains(message, "Bearer "+secret+"\x01") {
			t.Errorf("got %q, %v", message, err)
		}
	}
}
