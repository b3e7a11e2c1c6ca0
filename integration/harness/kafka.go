package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// BrokersEnv names the variable with the addresses of a running Kafka for the tests that do not need one of their own.
const BrokersEnv = "STREAMWORKER_TEST_BROKERS"

// Kafka is a broker that the harness started, or one that was there.
type Kafka struct {
	Address string // of several brokers, with commas between
	dir     string // of the one started here; "": not ours to stop
	config  string // more lines of its server.properties

	listeners string // more listeners, as kafka.sh takes them
}

// Existing is the Kafka of STREAMWORKER_TEST_BROKERS; false: the variable is not set.
func Existing() (*Kafka, bool) {
	address := os.Getenv(BrokersEnv)
	return &Kafka{Address: address}, address != ""
}

// NewKafka starts a Kafka on a new directory. config is added to its server.properties. Stop it with Remove.
func NewKafka(config ...string) (*Kafka, error) { return newKafka("", config) }

func newKafka(listeners string, config []string) (*Kafka, error) {
	dir, err := os.MkdirTemp("", "streamworker-kafka-")
	if err != nil {
		return nil, err
	}
	k := &Kafka{dir: dir, config: strings.Join(config, "\n"), listeners: listeners}
	if err := k.up(); err != nil {
		k.Remove() // an interrupt may have left the broker running
		return nil, err
	}
	return k, nil
}

// OwnKafka starts a Kafka for this test alone.
func OwnKafka(t testing.TB, config ...string) *Kafka {
	t.Helper()
	return OwnKafkaListening(t, "", config...)
}

// OwnKafkaListening is OwnKafka with more listeners, each NAME:PROTOCOL, with spaces between; see Listener.
func OwnKafkaListening(t testing.TB, listeners string, config ...string) *Kafka {
	t.Helper()
	k, err := newKafka(listeners, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Remove)
	return k
}

func (k *Kafka) up() error {
	out, err := k.script("up", k.dir)
	if err != nil {
		return err
	}
	k.Address = strings.TrimSpace(out)
	return nil
}

// script runs scripts/kafka.sh and returns what it prints.
func (k *Kafka) script(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(Root(), "scripts", "kafka.sh"), args...)
	cmd.Env = append(os.Environ(), "KAFKA_EXTRA_CONFIG="+k.config, "KAFKA_LISTENERS="+k.listeners)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kafka.sh %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// Listener is the address of one of the listeners given to OwnKafkaListening.
func (k *Kafka) Listener(t testing.TB, name string) string {
	t.Helper()
	lines, err := os.ReadFile(filepath.Join(k.dir, "listeners"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		if found, address, _ := strings.Cut(strings.TrimSpace(line), " "); found == name {
			return address
		}
	}
	t.Fatalf("Kafka has no listener %s: %s", name, lines)
	return ""
}

// Restart stops the broker and starts it again with its data, on the same port.
func (k *Kafka) Restart(t testing.TB) {
	t.Helper()
	if _, err := k.script("down", k.dir); err != nil {
		t.Fatal(err)
	}
	if err := k.up(); err != nil {
		t.Fatal(err)
	}
}

// Remove stops the broker and deletes its data.
func (k *Kafka) Remove() {
	if k.dir == "" {
		return
	}
	if _, err := k.script("down", k.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.RemoveAll(k.dir)
}

// ConsumerGroups runs Kafka's own kafka-consumer-groups and returns what it prints.
func (k *Kafka) ConsumerGroups(t testing.TB, args ...string) string {
	t.Helper()
	out, err := k.script(append([]string{"consumer-groups", "--bootstrap-server", k.Address}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ACLs runs Kafka's own kafka-acls.
func (k *Kafka) ACLs(t testing.TB, args ...string) {
	t.Helper()
	if _, err := k.script(append([]string{"acls"}, args...)...); err != nil {
		t.Fatal(err)
	}
}

// Client is a client that lives as long as the test.
func (k *Kafka) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(k.Address, ",")...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// CreateTopic creates a topic that is deleted when the test ends.
func (k *Kafka) CreateTopic(t testing.TB, name string, partitions int32) {
	t.Helper()
	admin := kadm.NewClient(k.Client(t))
	if _, err := admin.CreateTopic(t.Context(), partitions, -1, nil, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.deleteTopics(admin, name) })
}

// deleteTopics is for the end of a test: a broker of its own may be gone by then, and one that is not is left clean.
func (k *Kafka) deleteTopics(admin *kadm.Client, names ...string) {
	if k.dir != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := admin.DeleteTopics(ctx, names...); err != nil {
		fmt.Fprintf(os.Stderr, "deleting topics %v: %v\n", names, err)
	}
}
