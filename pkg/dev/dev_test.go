package dev

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trial is a short run on an embedded broker, or on the Kafka that the tests are to use.
func trial(t *testing.T) Config {
	t.Helper()
	cfg := Config{For: time.Second, Rate: 50}
	if addr := os.Getenv("STREAMWORKER_TEST_BROKERS"); addr != "" {
		cfg.Brokers = []string{addr}
	}
	return cfg
}

// perform makes the run and looks for what it has left behind.
func perform(t *testing.T, cfg Config, stop <-chan struct{}) (Summary, string, error) {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	var shown bytes.Buffer
	s, err := Run(context.Background(), stop, cfg, NewScreen(&shown, false, false))
	t.Log(shown.String())
	rest, readErr := os.ReadDir(temp)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if len(rest) > 0 {
		t.Errorf("the run has left %v", rest)
	}
	if len(cfg.Brokers) > 0 && shown.Len() > 0 { // else it was stopped before it has begun
		nothingLeft(t, cfg.Brokers, shown.String())
	}
	return s, shown.String(), err
}

var prefixes = regexp.MustCompile(Prefix + "[0-9a-f]{8}-")

// nothingLeft looks for what the run that has shown this has left on a real Kafka.
func nothingLeft(t *testing.T, brokers []string, shown string) {
	t.Helper()
	prefix := prefixes.FindString(shown)
	if prefix == "" {
		t.Fatal("the run has not shown the prefix of what it makes")
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := kadm.NewClient(cl).ListGroups(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(topics.Names(), groups.Groups()...) {
		if strings.HasPrefix(name, prefix) {
			t.Errorf("the run has left %s on the Kafka", name)
		}
	}
}

// One instance leaves and one joins: tasks move, and every word is counted right.
func TestRunCountsWhileTasksMove(t *testing.T) {
	cfg := trial(t)
	cfg.LeaveAfter, cfg.JoinAfter = 200*time.Millisecond, 500*time.Millisecond
	s, shown, err := perform(t, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !s.OK || s.Err() != nil || s.WrongCounts == nil || *s.WrongCounts != 0 {
		t.Errorf("%+v: %v", s, s.Err())
	}
	if s.TasksMoved == 0 || len(s.GapsMs) == 0 || s.Rebalances < 2 {
		t.Errorf("%d tasks moved with gaps %v in %d rebalances, want some of each", s.TasksMoved, s.GapsMs, s.Rebalances)
	}
	least := int64(cfg.Rate) * filledSeconds
	if s.RecordsIn < least || s.RecordsOut < s.RecordsIn*wordsPerLine {
		t.Errorf("%d lines in, %d records out: want %d lines at least, and %d records for each", s.RecordsIn, s.RecordsOut, least, wordsPerLine)
	}
	for _, want := range []string{"worker-2 leaves", "worker-2 has handed everything over and is gone", "worker-4 joins", " moved: worker-2 -> "} {
		if !strings.Contains(shown, want) {
			t.Errorf("nothing tells %q", want)
		}
	}
}

// A counter that leaves a word out is found out.
func TestABrokenCounterIsFound(t *testing.T) {
	cfg := trial(t)
	cfg.wordCount = bytes.Replace(wordCount, []byte(`value != ""`), []byte(`value not in ["", "the"]`), 1)
	s, _, err := perform(t, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.OK || s.WrongCounts == nil || *s.WrongCounts != 1 {
		t.Errorf("%+v, want one wrong count", s)
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), `"the" is 0, not `) {
		t.Errorf("the error is %v, want it to name the word", err)
	}
}

const orders = `
app: orders
guarantee: exactly_once
internal_topics: {create: false, replication: 3}
kafka: {heartbeat: 200ms, brokers: ["kafka.example:9092"]}
streams:
  - name: orders
    from: {topic: orders, value: json, on_error: ON_ERROR}
    steps:
      - map: STEP
      - to: {topic: numbers, value: int}
`

// A topology of one's own gets what its formats want, and all of it is processed.
func TestOwnTopology(t *testing.T) {
	cfg := trial(t)
	cfg.File = file(t, strings.NewReplacer("ON_ERROR", "fail", "STEP", "int(value.number)").Replace(orders))
	cfg.LeaveAfter = 200 * time.Millisecond
	s, _, err := perform(t, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !s.OK || s.WrongCounts != nil || s.RecordsIn == 0 || s.RecordsOut != s.RecordsIn || s.setBack != 0 {
		t.Errorf("%+v: %v", s, s.Err())
	}
}

// What such a topology sets aside is told, and is no mistake; what it cannot process is one.
func TestOwnTopologyThatCannotReadTheLines(t *testing.T) {
	t.Run("dead_letter", func(t *testing.T) {
		cfg := trial(t)
		cfg.File = file(t, strings.NewReplacer("ON_ERROR", "dead_letter", "STEP", "int(value.text)").Replace(orders))
		s, _, err := perform(t, cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !s.OK || s.setBack != s.RecordsIn || s.RecordsOut != s.RecordsIn {
			t.Errorf("%+v: %v", s, s.Err())
		}
	})
	t.Run("fail", func(t *testing.T) {
		cfg := trial(t)
		cfg.File = file(t, strings.NewReplacer("ON_ERROR", "fail", "STEP", "int(value.text)").Replace(orders))
		s, _, err := perform(t, cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Err(); s.OK || err == nil || !strings.Contains(err.Error(), "cannot go on: stream orders: record at ") {
			t.Errorf("%+v: %v, want the reason", s, err)
		}
	})
}

// What a topology reads that cannot be made up is refused, with what to do.
func TestOwnTopologyOfOtherFormats(t *testing.T) {
	cfg := trial(t)
	cfg.File = file(t, `
app: own
streams:
  - {name: s, from: {topic: rows, value: {format: csv, columns: {a: int}}}, steps: [to: {topic: out, value: json}]}
`)
	_, _, err := perform(t, cfg, nil)
	if want := "topic rows is read as csv of a int: a trial run makes text, numbers and JSON only. Cases beside the file test it: streamworker test"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ctrl-C before the stream: nothing to sum up, nothing left.
func TestStoppedEarly(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	if _, _, err := perform(t, trial(t), stop); !errors.Is(err, ErrStopped) {
		t.Fatalf("error %v, want ErrStopped", err)
	}
}

// Ctrl-C while a Kafka is looked for that does not answer, and while the first lines are processed.
func TestStoppedBeforeTheStream(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	t.Setenv("TMPDIR", t.TempDir())
	stop := make(chan struct{})
	var accepted sync.WaitGroup
	accepted.Go(func() {
		c, err := silent.Accept()
		close(stop)
		if err == nil {
			_, _ = io.Copy(io.Discard, c) // until the run closes it
			_ = c.Close()
		}
	})
	if _, err := Run(context.Background(), stop, Config{Brokers: []string{silent.Addr().String()}, For: time.Second, Rate: 1}, NewScreen(io.Discard, false, false)); !errors.Is(err, ErrStopped) {
		t.Errorf("no answer: %v, want ErrStopped", err)
	}
	accepted.Wait()

	stop = make(chan struct{})
	shown := &alarm{text: "some lines to begin with", rings: sync.OnceFunc(func() { close(stop) })}
	if _, err := Run(context.Background(), stop, trial(t), NewScreen(shown, false, false)); !errors.Is(err, ErrStopped) {
		t.Errorf("during the first lines: %v, want ErrStopped", err)
	}
}

// alarm is a writer that rings when the text is written.
type alarm struct {
	text  string
	rings func()
}

func (a *alarm) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(a.text)) {
		a.rings()
	}
	return len(b), nil
}

// A second Ctrl-C: the run ends at once, with its cause, and leaves nothing.
func TestGivenUp(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	cfg := trial(t)
	cfg.For = 0
	var shown bytes.Buffer
	screen := NewScreen(writerFunc(func(p []byte) {
		shown.Write(p)
		if bytes.Contains(p, []byte("the stream begins")) {
			cancel(cause)
		}
	}), false, false)
	if _, err := Run(ctx, nil, cfg, screen); !errors.Is(err, cause) {
		t.Fatalf("error %v, want the cause", err)
	}
	if rest, err := os.ReadDir(temp); err != nil || len(rest) > 0 {
		t.Errorf("the run has left %v, %v", rest, err)
	}
	if len(cfg.Brokers) > 0 {
		nothingLeft(t, cfg.Brokers, shown.String())
	}
}

type writerFunc func([]byte)

var _ io.Writer = writerFunc(nil)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
