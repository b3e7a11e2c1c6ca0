package command

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell runs command lines in this process.
type shell struct {
	signals  chan os.Signal
	answers  string        // to questions; "": nobody can be asked
	patience time.Duration // with Kafka; default 20 s
	stdout   string
	stderr   string
}

func (s *shell) run(t *testing.T, args ...string) int {
	t.Helper()
	var out, errOut syncBuffer
	code := execute(args, &env{
		out: &out, errOut: &errOut, lookup: os.LookupEnv, environ: os.Environ, signals: s.signals, patience: cmp.Or(s.patience, 20*time.Second),
		in: strings.NewReader(s.answers), asks: s.answers != "",
		exit: func(code int) { t.Errorf("exit at once with %d", code) },
	})
	s.stdout, s.stderr = out.String(), errOut.String()
	return code
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const words = `app: words
kafka: {brokers: [127.0.0.1:1]}
streams:
  - name: lines
    from: {topic: lines}
    steps:
      - count: {store: counts}
      - to: {topic: counts, value: int}
`
