package config

import (
	"strings"
	"testing"
)

const whole = `
app: a
kafka: {brokers: "x:1,y", tls: {ca: /ca.pem}, sasl: {mechanism: PLAIN, username: me, password: "${PASSWORD}"}}
instance_id: i
labels: {zone: a}
threads: 3
admin: {listen: ":9464"}
scale_down_timeout: 10m
streams:
  - name: s
    from: &t in
    steps: [count, {to: {topic: out, value: int}}]
`

const effective = `app: a
kafka:
  brokers:
  - k:1
  tls:
    enabled: true
    ca: /ca.pem
  sasl:
    mechanism: PLAIN
    username: me
    password: (hidden)
  group: g
  client_id: a
  heartbeat: 1s
  session_timeout: 15s
  rebalance_timeout: 1m
  transaction_timeout: 10s
  max_message_bytes: 1000012
schema_registry:
  tls:
    enabled: false
internal_topics:
  create: true
guarantee: at_least_once
instance_id: i
labels:
  pool: blue
  zone: a
capacity: 1
state:
  dir: /data
  block_cache: 32MiB
  memtables: 64MiB
  row_cache: 256MiB
  max_open_files: 1000
  compactions: 2
threads: 3
commit_interval: 100ms
learners:
  mode: eager
  acceptable_lag: 10000
  max_learners: 0
  stuck_after: 10m
standbys: 0
balancing_factor: 2
scale_down_timeout: 10m
on_terminate: keep
rebalance_mode: incremental
admin:
  listen: 127.0.0.1:9464
  allow_actions: false
telemetry:
  traces:
    commit_every: 100
log:
  level: info
  format: text
streams:
- name: s
  from: in
  steps:
  - count
  - to:
      topic: out
      value: int
`

// What is printed is a configuration again, and comes to the same.
func TestEffective(t *testing.T) {
	env := func(name string) (string, bool) {
		if name == EnvPrefix+"KAFKA_GROUP" {
			return "g", true
		}
		return lookup(name)
	}
	c, err := Parse("app.yaml", []byte(whole), env, Overrides{Brokers: []string{"k:1"}, StateDir: "/data", Labels: map[string]string{"pool": "blue"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != effective {
		t.Errorf("got\n%s", got)
	}
	again, err := mustParse(t, string(got), Overrides{}).YAML()
	if err != nil || string(again) != effective {
		t.Errorf("read again, it comes to (%v)\n%s", err, again)
	}
	asJSON, err := c.JSON()
	if text := string(asJSON); err != nil || !strings.HasPrefix(text, `{"app": "a", "kafka": {"brokers": ["k:1"]`) || strings.Contains(text, "s3cret") {
		t.Errorf("as JSON (%v): %s", err, text)
	}
}

// The least that a file says: what has no value is left out, as no file could say it.
func TestEffectiveDefaults(t *testing.T) {
	c := mustParse(t, "app: a\nkafka: {brokers: x}\n"+streams, Overrides{})
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"sasl", "ca:", "labels", "replication", "instance_id", "bandwidth", "scale_down_timeout", "listen"} {
		if strings.Contains(string(text), absent) {
			t.Errorf("it has %s:\n%s", absent, text)
		}
	}
	mustParse(t, string(text), Overrides{})
}
