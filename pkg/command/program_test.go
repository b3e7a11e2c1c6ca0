package command

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/streams"
)

const wordsOfProgram = `app: words
kafka: {brokers: [127.0.0.1:1]}
`

// runProgram runs a command line of a binary with a topology of its own.
func runProgram(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = execute(args, &env{
		name: "words", out: &stdout, errOut: &stderr, lookup: os.LookupEnv, environ: os.Environ,
		program: streams.Build(func(b *streams.Builder) {
			streams.From(b, "lines", streams.String, streams.String).GroupByKey().Count("counts").To("counts")
		}),
	})
	return code, stdout.String(), stderr.String()
}

// A program has the commands of the stock binary; what it computes is its own.
func TestProgram(t *testing.T) {
	file := write(t, "words.yaml", wordsOfProgram)
	full := write(t, "full.yaml", words)
	records := write(t, "records.json", `{"inputs":[{"topic":"lines","key":"a","value":"x","ts":7}]}`)
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"topology " + file, exitOK, "count (store counts: key string, value int)"},
		{"test --input " + records + " " + file, exitOK, `"tables":{"counts":{"a":1}}`},
		{"config check -c " + file, exitOK, "store: counts"},
		{"topology " + full, exitConfig, "full.yaml:4:3: streams: this program has its streams and tables in Go"},
		{"dev", exitUsage, "words: which application? -c FILE"},
		{"run", exitUsage, "See 'words run --help'"},
		{"--help", exitOK, "words run -c words.yaml"},
		{"status --state-dir /nowhere", exitNotRunning, "no instance is running"},
	} {
		code, out, errOut := runProgram(t, strings.Fields(c.line)...)
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%s: code %d, want %d with %q:\n%s%s", c.line, code, c.code, c.want, out, errOut)
		}
	}
}
