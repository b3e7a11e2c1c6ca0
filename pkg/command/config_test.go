package command

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

const secured = `app: words
kafka:
  brokers: [k:1]
  tls: {ca: /nowhere/ca.pem}
  sasl: {mechanism: PLAIN, username: me, password: s3cret}
streams:
  - {name: s, from: in, steps: [count]}
`

func TestConfigCheck(t *testing.T) {
	var s shell
	file := write(t, "words.yaml", secured)
	if code := s.run(t, "config", "check", "-c", file); code != exitConfig || !strings.Contains(s.stderr, file+":4:13: kafka.tls.ca: open /nowhere/ca.pem") || s.stdout != "" {
		t.Errorf("a missing file: exit code %d: %s%s", code, s.stdout, s.stderr)
	}
	t.Setenv("STREAMWORKER_THREADS", "7")
	code := s.run(t, "config", "check", "-c", file, "--skip-files", "--state-dir", "/data", "--label", "pool=blue")
	for _, want := range []string{"password: (hidden)", "threads: 7", "dir: /data", "pool: blue", "acceptable_lag: 10000", "- count"} {
		if code != exitOK || !strings.Contains(s.stdout, want) {
			t.Errorf("exit code %d, no %q in %s%s", code, want, s.stdout, s.stderr)
		}
	}
	t.Setenv("STREAMWORKER_THREAD", "7")
	if code := s.run(t, "config", "check", "-c", file, "--skip-files"); code != exitConfig || !strings.Contains(s.stderr, "did you mean STREAMWORKER_THREADS?") {
		t.Errorf("a misspelt variable: exit code %d: %s", code, s.stderr)
	}
	if err := os.Unsetenv("STREAMWORKER_THREAD"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.stdout, "s3cret") {
		t.Errorf("a secret is printed: %s", s.stdout)
	}
	var result struct {
		OK            bool
		Mistakes      []mistake
		Configuration struct {
			Kafka struct{ SASL struct{ Password string } }
		}
	}
	code = s.run(t, "config", "check", "-c", file, "--skip-files", "-o", "json")
	if err := json.Unmarshal([]byte(s.stdout), &result); err != nil || code != exitOK || !result.OK || len(result.Mistakes) != 0 || result.Configuration.Kafka.SASL.Password != "(hidden)" {
		t.Errorf("exit code %d, %v: %s", code, err, s.stdout)
	}
	file = write(t, "words.yaml", strings.Replace(strings.Replace(secured, "brokers:", "broker:", 1), "count", "cuont", 1))
	code = s.run(t, "config", "check", "-c", file, "-o", "json")
	if err := json.Unmarshal([]byte(s.stdout), &result); err != nil || code != exitConfig || result.OK || len(result.Mistakes) != 4 {
		t.Fatalf("exit code %d, %v, want 4 mistakes: %s", code, err, s.stdout)
	}
	if m := result.Mistakes[1]; m.File != file || m.Line != 3 || m.Column != 3 || !strings.Contains(m.Message, `"broker"`) || !strings.Contains(m.Hint, "did you mean brokers?") {
		t.Errorf("got %+v", m)
	}
	if code := s.run(t, "config", "check"); code != exitUsage {
		t.Errorf("no file: exit code %d", code)
	}
	if code := s.run(t, "config", "check", "-c", "missing.yaml", "-o", "json"); code != exitError || !strings.Contains(s.stderr, "missing.yaml") {
		t.Errorf("a missing configuration: exit code %d: %s", code, s.stderr)
	}
}

func TestConfigSchema(t *testing.T) {
	var s shell
	var schema struct {
		Schema     string `json:"$schema"`
		Properties map[string]json.RawMessage
	}
	code := s.run(t, "config", "schema")
	if err := json.Unmarshal([]byte(s.stdout), &schema); err != nil || code != exitOK || !strings.Contains(schema.Schema, "2020-12") || schema.Properties["streams"] == nil {
		t.Errorf("exit code %d, %v", code, err)
	}
}

// Commands without a file take the connection from the environment.
func TestConnectionOfTheEnvironment(t *testing.T) {
	app := newApplication(t)
	var s shell
	t.Setenv("STREAMWORKER_KAFKA_BROKERS", app.brokers)
	if code := s.run(t, "status", "--app", "words"); code != exitOK || !strings.Contains(s.stdout, "words") {
		t.Errorf("brokers of the environment: exit code %d: %s%s", code, s.stdout, s.stderr)
	}
	t.Setenv("STREAMWORKER_KAFKA_TLS_CA", "/nowhere/ca.pem")
	if code := s.run(t, "status", "--brokers", app.brokers, "--app", "words"); code != exitError || !strings.Contains(s.stderr, "kafka.tls.ca: open /nowhere/ca.pem") {
		t.Errorf("a missing file: exit code %d: %s", code, s.stderr)
	}
	t.Setenv("STREAMWORKER_KAFKA_HEARTBEAT", "soon")
	if code := s.run(t, "status", "--app", "words"); code != exitConfig || !strings.Contains(s.stderr, "environment variable STREAMWORKER_KAFKA_HEARTBEAT") {
		t.Errorf("a mistake: exit code %d: %s", code, s.stderr)
	}
	os.Unsetenv("STREAMWORKER_KAFKA_BROKERS")
	if code := s.run(t, "status", "--app", "words"); code != exitUsage {
		t.Errorf("no brokers: exit code %d: %s", code, s.stderr)
	}
}
