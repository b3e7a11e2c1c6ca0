package command

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/config"
)

// A pod that ends stays a member if it comes back, and hands over if it does not.
func TestHowKubernetesWants(t *testing.T) {
	for name, c := range map[string]struct {
		pod    string
		status int
		body   string
		want   config.OnTerminate
		why    string
	}{
		"rolling restart":    {"words-1", 200, `{"spec":{"replicas":3}}`, config.Keep, "pod 1 comes back"},
		"scaled down":        {"words-2", 200, `{"spec":{"replicas":2}}`, config.Drain, "scaled to 2, this is pod 2"},
		"ordinals from 5":    {"words-6", 200, `{"spec":{"replicas":2,"ordinals":{"start":5}}}`, config.Keep, "comes back"},
		"ordinals moved":     {"words-1", 200, `{"spec":{"replicas":2,"ordinals":{"start":5}}}`, config.Drain, "this is pod 1"},
		"no replicas named":  {"words-0", 200, `{"spec":{}}`, config.Keep, "comes back"},
		"scaled to nothing":  {"words-0", 200, `{"spec":{"replicas":0}}`, config.Release, "scaled to nothing"},
		"being deleted":      {"words-0", 200, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"replicas":3}}`, config.Release, "being deleted"},
		"deleted":            {"words-0", 404, `{}`, config.Release, "is gone"},
		"no right to ask":    {"words-0", 403, `{}`, config.Keep, "403 Forbidden"},
		"no sense":           {"words-0", 200, `<html>`, config.Keep, "invalid character"},
		"no StatefulSet pod": {"words-x7q", 200, `{}`, config.Keep, "no number at the end"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/apis/apps/v1/namespaces/shop/statefulsets/words" || r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("%s %s", r.URL, r.Header.Get("Authorization"))
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			at, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			account := t.TempDir()
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			for file, content := range map[string]string{"token": "secret\n", "namespace": "shop", "ca.crt": string(ca)} {
				if err := os.WriteFile(filepath.Join(account, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			values := map[string]string{"KUBERNETES_SERVICE_HOST": at.Hostname(), "KUBERNETES_SERVICE_PORT": at.Port(), "POD_NAME": c.pod}
			how, why := howKubernetesWants(t.Context(), &env{
				lookup:         func(name string) (string, bool) { v, ok := values[name]; return v, ok },
				serviceAccount: account,
			})
			if how != c.want || !strings.Contains(why, c.why) {
				t.Errorf("%s: %s; want %s: %s", how, why, c.want, c.why)
			}
		})
	}
	how, why := howKubernetesWants(t.Context(), &env{lookup: func(string) (string, bool) { return "", false }})
	if how != config.Keep || !strings.Contains(why, "no pod of Kubernetes") {
		t.Errorf("outside: %s: %s", how, why)
	}
}
