//go:build integration

package security

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// TestSecurity shares one broker among all that needs one.
func TestSecurity(t *testing.T) {
	w := newWorld(t)
	t.Run("admitted", func(t *testing.T) { testAdmitted(t, w) })
	t.Run("refused", func(t *testing.T) { testRefused(t, w) })
	t.Run("commands", func(t *testing.T) { testCommands(t, w) })
	t.Run("rotation", func(t *testing.T) { testRotation(t, w) })
	t.Run("rights", func(t *testing.T) { testRights(t, w) })
	t.Run("lacking", func(t *testing.T) { testLacking(t, w) })
}

// ca is the key tls with what vouches for the brokers.
func (w *world) ca() string { return fmt.Sprintf("tls: {ca: %s}", w.ours.CA()) }

func password(mechanism, user, password string) string {
	return fmt.Sprintf("sasl: {mechanism: %s, username: %s, password: %s}", mechanism, user, password)
}

func testAdmitted(t *testing.T, w *world) {
	issuer := newIssuer(t)
	for _, c := range []struct{ name, listener, security string }{
		{"tls", "TLS", w.ca()},
		{"tls by another name", "TLS", fmt.Sprintf("tls: {ca: %s, server_name: broker}", w.ours.CA())},
		{"mutual tls", "MTLS", fmt.Sprintf("tls: {ca: %s, cert: %s, key: %s}", w.ours.CA(), w.own.Cert, w.own.Key)},
		{"plain", "SASL", w.ca() + ", " + password("PLAIN", admin, plainPassword)},
		{"scram 256", "SASL", w.ca() + ", " + password("SCRAM-SHA-256", admin, scramPassword)},
		{"scram 512", "SASL", fmt.Sprintf("%s, sasl: {mechanism: SCRAM-SHA-512, username: %s, password_file: %s}", w.ca(), admin, file(t, "password", scramPassword+"\n"))},
		{"token from a file", "SASL", fmt.Sprintf("%s, sasl: {mechanism: OAUTHBEARER, token_file: %s}", w.ca(), file(t, "token", token(admin, time.Hour)+"\n"))},
		{"token from an endpoint", "SASL", fmt.Sprintf("%s, sasl: {mechanism: OAUTHBEARER, token_endpoint: {url: %s, client_id: %s, client_secret_file: %s, scope: kafka}}",
			w.ca(), issuer, admin, file(t, "secret", clientSecret))},
		{"scram without tls", "SCRAM", password("SCRAM-SHA-256", admin, scramPassword)},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.application(t, c.listener, c.security)
			load, watch := harness.NewLoad(t, a, 100), harness.NewWatch(t, a, 100)
			p := a.Start("a")
			load.All()
			watch.AwaitExact(load, limit)
			p.Signal(syscall.SIGTERM)
			if code := p.Wait(limit); code != 0 {
				t.Errorf("exit code %d", code)
			}
			silent(t, p.Output())
		})
	}
}

// Exit codes of run, as streamworker exit-codes lists them.
const (
	exitError  = 1
	exitConfig = 3
)

// testRefused starts an instance that cannot connect: it ends at once and says what is wrong, where, and what to do.
func testRefused(t *testing.T, w *world) {
	issuer := newIssuer(t)
	pair := func(c harness.Certificate) string {
		return fmt.Sprintf("tls: {ca: %s, cert: %s, key: %s}", w.ours.CA(), c.Cert, c.Key)
	}
	asks := func(secret string) string {
		return fmt.Sprintf("%s, sasl: {mechanism: OAUTHBEARER, token_endpoint: {url: %s, client_id: %s, client_secret: %s}}", w.ca(), issuer, admin, secret)
	}
	missing := file(t, "missing", "") + ".pem"
	for _, c := range []struct {
		name, listener, security string
		code                     int
		want                     []string
	}{
		{"wrong password", "SASL", w.ca() + ", " + password("PLAIN", admin, wrongPassword), exitError, []string{"refuse the credentials", "check those in kafka.sasl", "SASL_AUTHENTICATION_FAILED"}},
		{"wrong scram password", "SASL", w.ca() + ", " + password("SCRAM-SHA-512", admin, wrongPassword), exitError, []string{"refuse the credentials"}},
		{"wrong mechanism", "SCRAM", password("PLAIN", admin, plainPassword), exitError, []string{"do not offer this mechanism", "kafka.sasl.mechanism"}},
		{"no credentials", "SCRAM", "client_id: me", exitError, []string{"kafka.sasl if it asks for authentication"}},
		{"credentials to a port without sasl", "TLS", w.ca() + ", " + password("PLAIN", admin, plainPassword), exitError, []string{"does not ask for authentication", "remove kafka.sasl"}},
		{"expired token", "SASL", fmt.Sprintf("%s, sasl: {mechanism: OAUTHBEARER, token_file: %s}", w.ca(), file(t, "token", token(admin, -time.Hour))), exitError, []string{"refuse the credentials"}},
		{"wrong client secret", "SASL", asks(wrongPassword), exitError, []string{issuer, "401", "invalid_client", "check client_id, client_secret"}},
		{"expired certificate of the broker", "EXPIRED", w.ca(), exitError, []string{"the certificate of 127.0.0.1", "is not valid now", "renew it on the broker"}},
		{"wrong authority", "TLS", fmt.Sprintf("tls: {ca: %s}", w.theirs.CA()), exitError, []string{"was not signed by an authority that is in " + w.theirs.CA(), "set kafka.tls.ca"}},
		{"no authority", "TLS", "tls: {}", exitError, []string{"was not signed by an authority that this host trusts", "set kafka.tls.ca"}},
		{"wrong name", "TLS", fmt.Sprintf("tls: {ca: %s, server_name: kafka.example.com}", w.ours.CA()), exitError, []string{"is for another host", "kafka.example.com", "kafka.tls.server_name"}},
		{"plain text to a tls port", "TLS", "client_id: me", exitError, []string{"set kafka.tls"}},
		{"tls to a plain-text port", "", w.ca(), exitError, []string{"closed the connection during the TLS handshake", "remove kafka.tls"}},
		{"no client certificate", "MTLS", w.ca(), exitError, []string{"set kafka.tls.cert and kafka.tls.key"}},
		{"client certificate of a stranger", "MTLS", pair(w.foreign), exitError, []string{"refuses the client certificate in " + w.foreign.Cert, "must trust the authority"}},
		{"expired client certificate", "MTLS", pair(w.expired), exitConfig, []string{"app.yaml:2:", "kafka.tls.cert: the certificate in " + w.expired.Cert + " expired on", "renew it"}},
		{"key of another certificate", "MTLS", pair(harness.Certificate{Cert: w.own.Cert, Key: w.foreign.Key}), exitConfig,
			[]string{"app.yaml:2:", "kafka.tls.key: " + w.foreign.Key + " does not go with the certificate in " + w.own.Cert}},
		{"missing file", "TLS", fmt.Sprintf("tls: {ca: %s}", missing), exitConfig, []string{"app.yaml:2:", "kafka.tls.ca", missing, "no such file"}},
		{"certificate file without a certificate", "TLS", fmt.Sprintf("tls: {ca: %s}", w.own.Key), exitConfig, []string{"app.yaml:2:", w.own.Key + " holds no certificate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.application(t, c.listener, c.security)
			p := a.Start("a")
			if code := p.Wait(limit); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			lines := strings.Split(strings.TrimSpace(p.Output()), "\nstreamworker: ")
			message := lines[len(lines)-1]
			for _, want := range c.want {
				if !strings.Contains(message, want) {
					t.Errorf("the message does not say %q:\n%s", want, message)
				}
			}
			silent(t, p.Output())
			if testing.Verbose() {
				t.Log(message)
			}
		})
	}
}

// testCommands asks from where no instance runs: the connection comes from a file, or from the environment.
func testCommands(t *testing.T, w *world) {
	a := w.application(t, "SASL", w.ca()+", "+password("PLAIN", admin, plainPassword))
	p := a.Start("a")
	a.AwaitBalanced("a")
	address := w.Listener(t, "SASL")
	ask := func(t *testing.T, code int, want string, args ...string) {
		t.Helper()
		r := harness.Command(t, args...)
		if r.Code != code || !strings.Contains(r.Stdout+r.Stderr, want) {
			t.Errorf("%v: exit code %d, want %d and %q in\n%s%s", args, r.Code, code, want, r.Stdout, r.Stderr)
		}
		silent(t, r.Stdout+r.Stderr)
	}
	ask(t, 0, "running", "status", "-c", a.Config(), "--brokers", address)
	ask(t, exitError, "set kafka.tls", "status", "--brokers", address, "--app", a.Name)
	t.Run("environment", func(t *testing.T) {
		t.Setenv("STREAMWORKER_KAFKA_TLS_CA", w.ours.CA())
		t.Setenv("STREAMWORKER_KAFKA_SASL_MECHANISM", "SCRAM-SHA-256")
		t.Setenv("STREAMWORKER_KAFKA_SASL_USERNAME", admin)
		t.Setenv("STREAMWORKER_KAFKA_SASL_PASSWORD", wrongPassword)
		ask(t, exitError, "refuse the credentials", "leave", "--brokers", address, "--app", a.Name, "--instance", "a")
		t.Setenv("STREAMWORKER_KAFKA_SASL_PASSWORD", scramPassword)
		ask(t, 0, "running", "status", "--brokers", address, "--app", a.Name)
		t.Setenv("STREAMWORKER_KAFKA_BROKERS", address)
		ask(t, 0, "marked as leaving", "leave", "--app", a.Name, "--instance", "a", "--now")
	})
	if code := p.Wait(limit); code != 11 {
		t.Errorf("the instance ended with exit code %d, want 11", code)
	}
	silent(t, p.Output())
}

// testRotation changes a user's password while an instance runs, which has to prove who it is every other second.
func testRotation(t *testing.T, w *world) {
	secret := file(t, "password", scramPassword)
	w.setPassword(t, rotating, scramPassword)
	a := w.application(t, "SCRAM", fmt.Sprintf("sasl: {mechanism: SCRAM-SHA-256, username: %s, password_file: %s}", rotating, secret))
	load, watch := harness.NewLoad(t, a, 100), harness.NewWatch(t, a, 100)
	p := a.Start("a")
	load.All()
	watch.AwaitExact(load, limit)
	if err := os.WriteFile(secret, []byte("new-s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.setPassword(t, rotating, "new-s3cret")
	load.Start(100)
	sent := load.Sent()
	harness.Until(t, limit, "several times has the instance authenticated", func() bool { return load.Sent() >= sent+1000 })
	load.Stop()
	// An authentication between the two changes may have failed.
	watch.AwaitComplete(load, limit, 0, 1)
	silent(t, p.Output())
}

// token is one of the kind that Kafka takes where no validator is configured: not signed.
func token(subject string, life time.Duration) string {
	part := func(v map[string]any) string {
		text, _ := json.Marshal(v) // of plain values, it cannot fail
		return base64.RawURLEncoding.EncodeToString(text)
	}
	now := time.Now()
	return part(map[string]any{"alg": "none"}) + "." +
		part(map[string]any{"sub": subject, "iat": now.Add(-2 * time.Hour).Unix(), "exp": now.Add(life).Unix(), "scope": "kafka"}) + "."
}

// newIssuer serves tokens by client credentials and returns the endpoint's address.
func newIssuer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("grant_type") != "client_credentials" || secret != clientSecret {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error": "invalid_client", "note": %q}`, secret)
			return
		}
		fmt.Fprintf(w, `{"access_token": %q, "token_type": "Bearer", "expires_in": 3600}`, token(id, time.Hour))
	}))
	t.Cleanup(s.Close)
	return s.URL
}
