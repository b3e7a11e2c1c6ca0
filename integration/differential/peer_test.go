//go:build integration

package differential

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/streamworker/streamworker/integration/harness"
)

// peer is Kafka Streams: one JVM, which takes a run a line and answers each with a line.
type peer struct {
	in   io.WriteCloser
	out  *bufio.Reader
	said bytes.Buffer // to standard error
}

// startPeer compiles the program and starts it; it ends with the test.
func startPeer(t *testing.T) *peer {
	t.Helper()
	dir := filepath.Join(harness.Root(), "bin", "differential")
	build := exec.CommandContext(t.Context(), "mvn", "-B", "-q", "-Dstyle.color=never", "-f", filepath.Join("streams", "pom.xml"), "-Doutput="+dir, "package")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building Kafka Streams by mvn (it needs Maven and a JDK 17 or newer): %v\n%s", err, text)
	}
	java := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java = filepath.Join(home, "bin", "java")
	}
	cmd := exec.Command(java, "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
		"-cp", filepath.Join(dir, "differential.jar")+":"+filepath.Join(dir, "lib", "*"), "differential.Main", t.TempDir())
	p := &peer{}
	cmd.Stderr = &p.said
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if errIn != nil || errOut != nil {
		t.Fatal(errIn, errOut)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the JVM: %v\n%s", err, p.said.String())
		}
	})
	return p
}

// run gives a topology its records.
func (p *peer) run(t *testing.T, topology []any, records []record) *result {
	t.Helper()
	line := marshal(t, map[string]any{"topology": topology, "inputs": records})
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		t.Fatalf("%v\n%s", err, p.said.String())
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the JVM gave no answer: %v\n%s", err, p.said.String())
	}
	r, err := readResult(answer)
	if err != nil {
		t.Fatalf("Kafka Streams: %v\n%.3000s", err, p.said.String())
	}
	return r
}

// result is what one side gives.
type result struct {
	Outputs map[string][]output       `json:"outputs"`
	Tables  map[string]map[string]any `json:"tables"`
	Error   string                    `json:"error"`
}

type output struct {
	Input       int    `json:"i"`
	Key         any    `json:"key"`
	Value       any    `json:"value"`
	TS          int64  `json:"ts"`
	WindowStart *int64 `json:"window_start"`
	WindowEnd   *int64 `json:"window_end"`
}

func readResult(src []byte) (*result, error) {
	r := new(result)
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%w: %.200s", err, src)
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	for topic, outputs := range r.Outputs {
		for i, o := range outputs {
			outputs[i].Key, outputs[i].Value = plain(o.Key), plain(o.Value)
		}
		for row, v := range r.Tables[topic] {
			r.Tables[topic][row] = plain(v)
		}
	}
	return r, nil
}

// plain gives equal numbers one form: Java writes 2.0 where Go writes 2.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f)
		}
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
	}
	return v
}

// row is the key as a table has it.
func (o output) row() string {
	key, isText := o.Key.(string)
	if !isText {
		b, _ := json.Marshal(o.Key)
		key = string(b)
	}
	if o.WindowStart != nil && o.WindowEnd != nil {
		key += fmt.Sprintf("@%d/%d", *o.WindowStart, *o.WindowEnd)
	}
	return key
}

func (o output) String() string {
	b, _ := json.Marshal(o.Value)
	return fmt.Sprintf("%s = %s at %d, of input %d", o.row(), b, o.TS, o.Input)
}
