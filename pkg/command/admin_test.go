package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// What an instance shows at its admin address, to whom, and what it sends to a collector. The token is nowhere to be seen.
func TestAdminAddress(t *testing.T) {
	const token = "a-token-that-nobody-guesses"
	var sent atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" {
			sent.Add(1)
		}
	}))
	defer collector.Close()
	t.Setenv("ADMIN_TOKEN", token)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "in", "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	config := fmt.Sprintf(`
app: shown
kafka: {brokers: [%q], heartbeat: 200ms}
admin: {listen: "127.0.0.1:0", token: "${ADMIN_TOKEN}"}
log: {level: debug}
streams:
  - name: events
    from: {topic: in, value: bytes}
    steps: [{count: {store: counts}}, {to: {topic: out, value: int}}]
`, kafka.ListenAddrs()[0])
	p := start(t, write(t, "app.yaml", config), "a")
	line := regexp.MustCompile(`msg="serving metrics and health" app=\S+ instance=\S+ component=admin address=(\S+)`)
	await(t, "the address", func() bool { return line.MatchString(p.log.String()) })
	address := "http://" + line.FindStringSubmatch(p.log.String())[1]

	ask := func(method, path, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "nobody-guesses") {
			t.Errorf("%s tells the token", path)
		}
		return resp.StatusCode, string(body)
	}
	await(t, "readiness", func() bool { code, _ := ask(http.MethodGet, "/readyz", ""); return code == http.StatusOK })
	for _, c := range []struct {
		method, path, token string
		code                int
		says                string
	}{
		{http.MethodGet, "/livez", "", http.StatusOK, "ok"},
		{http.MethodGet, "/metrics", "", http.StatusUnauthorized, "token"},
		{http.MethodGet, "/metrics", token, http.StatusOK, `streamworker_tasks{role="active"} 2`},
		{http.MethodGet, "/api/v1/overview", "a-wrong-token-of-length", http.StatusUnauthorized, "token"},
		{http.MethodGet, "/api/v1/overview", token, http.StatusOK, `"app":"shown"`},
		{http.MethodGet, "/api/v1/topology", token, http.StatusOK, `"stores":[{"name":"counts"`},
		{http.MethodPost, "/api/v1/leave", token, http.StatusForbidden, "admin.allow_actions"},
		{http.MethodGet, "/", "", http.StatusOK, "<title>streamworker</title>"},
		{http.MethodGet, "/status", token, http.StatusNotFound, ""},
	} {
		if code, body := ask(c.method, c.path, c.token); code != c.code || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d %.200s, want %d and %q", c.method, c.path, code, body, c.code, c.says)
		}
	}
	p.signals <- syscall.SIGTERM
	p.ends(t, exitOK)
	if sent.Load() == 0 {
		t.Error("no trace of opening two tasks was sent")
	}
	if strings.Contains(p.log.String(), "nobody-guesses") {
		t.Errorf("the log tells the token:\n%s", p.log)
	}

	open := write(t, "open.yaml", strings.NewReplacer("127.0.0.1:0", "0.0.0.0:0", `, token: "${ADMIN_TOKEN}"`, "").Replace(config))
	var s shell
	if code := s.run(t, "run", "-c", open); code != exitConfig || !strings.Contains(s.stderr, "admin.token_file") {
		t.Errorf("open to everybody: exit code %d: %s", code, s.stderr)
	}
	missing := write(t, "missing.yaml", strings.Replace(config, `token: "${ADMIN_TOKEN}"`, "token_file: /nowhere/token", 1))
	if code := s.run(t, "run", "-c", missing, "--state-dir", p.dir); code != exitConfig || !strings.Contains(s.stderr, "admin.token_file") {
		t.Errorf("no token in the file: exit code %d: %s", code, s.stderr)
	}
}
