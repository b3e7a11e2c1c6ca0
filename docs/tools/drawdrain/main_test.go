package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// record is a file of these lines.
func record(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A run of two instances, of which one leaves: its task is learned, becomes ready, and moves.
func TestDraw(t *testing.T) {
	begin := time.UnixMilli(1_700_000_000_000)
	sample := func(ms int, instances string) string {
		return fmt.Sprintf(`%d {"instances":[%s]}`, begin.UnixMilli()+int64(ms), instances)
	}
	event := func(ms int, rest string) string {
		return fmt.Sprintf(`{"time":%q,%s}`, begin.Add(time.Duration(ms)*time.Millisecond).Format(time.RFC3339Nano), rest)
	}
	samples := record(t, "samples",
		sample(0, `{"id":"a","active":["0_0"]},{"id":"b","active":["0_1"]}`),
		sample(2000, `{"id":"a","active":["0_0"],"learning":[{"task":"0_1"}]},{"id":"b","active":["0_1"]}`),
		fmt.Sprint(begin.UnixMilli()+2500, " "), // status failed
		sample(3000, `{"id":"a","active":["0_0"],"learning":[{"task":"0_1","ready":true}]},{"id":"b","active":["0_1"]}`),
		sample(4000, `{"id":"a","active":["0_0","0_1"]}`),
		sample(9000, `{"id":"a","active":["0_0","0_1"]}`))
	leaving := record(t, "b.log",
		event(1500, `"msg":"marked as leaving","instance":"b"`),
		"drained, and what the command says of it",
		event(3600, `"msg":"drained: leaving the group","instance":"b"`))
	staying := record(t, "a.log", event(3500, `"msg":"handover","role":"take","instance":"a","task":"0_1","gap_ms":21.8`))

	var picture strings.Builder
	if err := draw(&picture, samples, []string{leaving, staying}); err != nil {
		t.Fatal(err)
	}
	parser := xml.NewDecoder(strings.NewReader(picture.String()))
	for {
		if _, err := parser.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("no XML: %v\n%s", err, picture.String())
		}
	}
	for _, want := range []string{">a<", ">b<", "0_1", "gap 22 ms"} {
		if !strings.Contains(picture.String(), want) {
			t.Errorf("the picture has no %q:\n%s", want, picture.String())
		}
	}

	for what, c := range map[string]struct {
		samples, log, want string
	}{
		"no handover":     {samples, leaving, "no handover in the logs"},
		"no samples":      {filepath.Join(t.TempDir(), "none"), staying, "no such file"},
		"a sample of air": {record(t, "bad", "now {}"), staying, "bad:1: want ms since the epoch"},
	} {
		if err := draw(io.Discard, c.samples, []string{c.log}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}
