//go:build integration

// Package security shows the product on a Kafka with TLS, SASL and an authorizer, one broker for all tests.
package security

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/streamworker/streamworker/integration/harness"
)

func TestMain(m *testing.M) {
	if err := harness.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// limit bounds every wait for something that takes seconds.
const limit = 3 * time.Minute

// Secrets, none of which may ever be printed.
const (
	plainPassword = "plain-s3cret"
	scramPassword = "scram-s3cret"
	clientSecret  = "oauth-s3cret"
	wrongPassword = "wrong-s3cret"
)

// Users.
const (
	admin    = "admin"    // may do everything
	worker   = "worker"   // runs instances, with the documented rights
	rotating = "rotating" // may do everything, with a password that changes
	operator = "operator" // marks instances as leaving, with the documented rights
	limited  = "limited"  // has all rights but one
	nobody   = "nobody"   // has no rights
)

// world is the broker and who vouches for whom.
type world struct {
	*harness.Kafka
	ours, theirs  *harness.Authority
	own, foreign  harness.Certificate // of clients
	expired       harness.Certificate
	expiredBroker harness.Certificate
}

// The listeners. On PLAINTEXT and TLS everyone is User:ANONYMOUS, who may do everything.
const listeners = "TLS:SSL MTLS:SSL EXPIRED:SSL SASL:SASL_SSL SCRAM:SASL_PLAINTEXT"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{ours: harness.NewAuthority(t, "ours"), theirs: harness.NewAuthority(t, "theirs")}
	tomorrow, yesterday := time.Now().Add(20*time.Hour), time.Now().Add(-20*time.Hour)
	broker := w.ours.Issue(t, "broker", tomorrow)
	w.expiredBroker = w.ours.Issue(t, "old-broker", yesterday)
	w.own, w.foreign, w.expired = w.ours.Issue(t, "client", tomorrow), w.theirs.Issue(t, "stranger", tomorrow), w.ours.Issue(t, "old-client", yesterday)
	login := func(listener, mechanism, module, options string) string {
		return fmt.Sprintf("listener.name.%s.%s.sasl.jaas.config=org.apache.kafka.common.security.%s required %s;", listener, mechanism, module, options)
	}
	w.Kafka = harness.OwnKafkaListening(t, listeners,
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users=User:ANONYMOUS;User:CN=client;User:"+admin+";User:"+rotating,
		"ssl.keystore.type=PEM", "ssl.keystore.location="+broker.Both, "ssl.truststore.type=PEM", "ssl.truststore.location="+w.ours.CA(),
		"listener.name.mtls.ssl.client.auth=required",
		"listener.name.expired.ssl.keystore.location="+w.expiredBroker.Both,
		"listener.name.sasl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
		login("sasl", "plain", "plain.PlainLoginModule", users(admin, worker, operator, limited, nobody)),
		login("sasl", "scram-sha-256", "scram.ScramLoginModule", ""),
		login("sasl", "scram-sha-512", "scram.ScramLoginModule", ""),
		login("sasl", "oauthbearer", "oauthbearer.OAuthBearerLoginModule", `unsecuredLoginStringClaim_sub="broker"`),
		"listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-256",
		login("scram", "scram-sha-256", "scram.ScramLoginModule", ""),
		"listener.name.scram.scram-sha-256.connections.max.reauth.ms=2000",
	)
	w.setPassword(t, admin, scramPassword)
	return w
}

// setPassword is for the SCRAM mechanisms.
func (w *world) setPassword(t *testing.T, user, password string) {
	t.Helper()
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		change := kadm.UpsertSCRAM{User: user, Mechanism: m, Iterations: 4096, Password: password}
		results, err := kadm.NewClient(w.Client(t)).AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{change})
		if err == nil {
			err = results.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// users are options of PLAIN's login module.
func users(names ...string) string {
	var options []string
	for _, name := range names {
		options = append(options, fmt.Sprintf("user_%s=%q", name, plainPassword))
	}
	return strings.Join(options, " ")
}

// application counts records, and reaches Kafka as the given lines of the key kafka say.
func (w *world) application(t *testing.T, listener, security string, settings ...string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, w.Kafka, "secure", 2)
	w.rewrite(t, a, listener, security, settings...)
	return a
}

func (w *world) rewrite(t *testing.T, a *harness.App, listener, security string, settings ...string) {
	t.Helper()
	address := w.Address
	if listener != "" {
		address = w.Listener(t, listener)
	}
	a.Write(fmt.Sprintf(`app: %s
kafka: {brokers: ["%s"], %s}
log: {format: json, level: debug}
streams:
  - name: events
    from: {topic: %s}
    steps:
      - count: {store: counts}
      - to: {topic: %s, value: int}
`, a.Name, address, security, a.Input(), a.Output()) + strings.Join(settings, "\n"))
}

// silent fails the test if a text holds a secret.
func silent(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "s3cret") {
		t.Errorf("a secret is printed:\n%s", text)
	}
}

// file writes a file and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
