package dev

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/topology"
)

func TestCompare(t *testing.T) {
	expected := map[string]int64{"a": 3, "b": 2, "c": 9, "d": 1}
	got := map[string]int64{"a": 3, "b": 4, "c": 8, "e": 1}
	want := []wrongCount{{"c", 8, 9}, {"b", 4, 2}, {"d", 0, 1}, {"e", 1, 0}}
	if wrong := compare(expected, got); !slices.Equal(wrong, want) {
		t.Errorf("wrong are %v, want %v", wrong, want)
	}
	if wrong := compare(expected, expected); len(wrong) > 0 {
		t.Errorf("wrong are %v, want none", wrong)
	}
}

// The JSON form is what scripts read.
func TestSummaryJSON(t *testing.T) {
	right := 0
	s := Summary{OK: true, RecordsIn: 10, RecordsOut: 80, WrongCounts: &right, Rebalances: 4, GapsMs: map[string]float64{}}
	s.addMoves([]move{
		{task: assign.TaskID{Partition: 3}, gap: 12_340 * time.Microsecond}, {task: assign.TaskID{Partition: 3}, gap: 10 * time.Millisecond},
		{task: assign.TaskID{Subtopology: 1}, gap: 31 * time.Millisecond},
	})
	for _, c := range []struct {
		s    Summary
		want string
	}{
		{s, `{"ok":true,"records_in":10,"records_out":80,"wrong_counts":0,"tasks_moved":3,"rebalances":4,"max_gap_ms":31,"gaps_ms":{"0_3":12.3,"1_0":31}}`},
		{Summary{GapsMs: map[string]float64{}}, `{"ok":false,"records_in":0,"records_out":0,"wrong_counts":null,"tasks_moved":0,"rebalances":0,"max_gap_ms":0,"gaps_ms":{}}`},
	} {
		var b bytes.Buffer
		if err := c.s.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(b.String()); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestSummaryText(t *testing.T) {
	right := 0
	for _, c := range []struct {
		s    Summary
		want string
	}{
		{Summary{RecordsIn: 1200, RecordsOut: 9600, WrongCounts: &right, words: 1000}, "1,200 lines in, 9,600 records out. All 1,000 counts are right.\n"},
		{Summary{RecordsIn: 5, RecordsOut: 5, setBack: 2}, "5 lines in, 5 records out. Every line was processed; what your topology made of it is not checked.\n" +
			"2 records were skipped, dropped or written to a dead letter topic, as the file says.\n"},
		{Summary{RecordsIn: 5, unread: 5, TasksMoved: 2, Rebalances: 3, MaxGapMs: 1500, median: 20 * time.Millisecond}, "5 lines in, 0 records out.\n" +
			"2 moves of tasks in 3 rebalances; longest gap 1.5 s, median 20 ms.\n"},
	} {
		var b bytes.Buffer
		if err := c.s.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("got  %q\nwant %q", b.String(), c.want)
		}
	}
}

// A handover of before the stream has no gap worth telling: there was no input.
func TestMovesBeforeTheStreamDoNotCount(t *testing.T) {
	m := newMoves()
	from, to := m.events("worker-1"), m.events("worker-2")
	early, late := assign.ReleaseID{Generation: 2, Owner: "m1"}, assign.ReleaseID{Generation: 5, Owner: "m1"}
	task := assign.TaskID{Subtopology: 1, Partition: 3}
	from.PhaseChanged(tasks.PhaseInfo{Task: task, Member: "m1"})
	from.Released(tasks.ReleaseInfo{Task: task, Release: early})
	m.begin()
	to.TakenOver(tasks.TakeoverInfo{Task: task, Release: early, Gap: time.Hour})
	from.Released(tasks.ReleaseInfo{Task: task, Release: late})
	if n := m.underWay(); n != 1 {
		t.Errorf("%d under way, want 1", n)
	}
	to.TakenOver(tasks.TakeoverInfo{Task: task, Release: late, Gap: time.Millisecond})
	taken, _ := m.since(0, 0)
	if len(taken) != 1 || taken[0].from != "worker-1" || taken[0].to != "worker-2" || taken[0].gap != time.Millisecond || m.underWay() != 0 {
		t.Errorf("moves %+v, %d under way", taken, m.underWay())
	}
}

// The two owners tell of a handover on their own: the taker may be first.
func TestMoveToldByTheTakerFirst(t *testing.T) {
	m := newMoves()
	m.begin()
	task, release := assign.TaskID{Partition: 3}, assign.ReleaseID{Generation: 5, Owner: "m1"}
	m.events("worker-2").TakenOver(tasks.TakeoverInfo{Task: task, Release: release, Gap: time.Millisecond})
	m.events("worker-1").Released(tasks.ReleaseInfo{Task: task, Release: release})
	if taken, _ := m.since(0, 0); len(taken) != 1 || m.underWay() != 0 {
		t.Errorf("moves %+v, %d under way", taken, m.underWay())
	}
}

// The words that are counted are those of the text, and the text is the same in each run.
func TestLines(t *testing.T) {
	w, again := newWriter(), newWriter()
	for range 100 {
		words := w.line()
		if !slices.Equal(words, again.line()) {
			t.Fatal("two runs have different text")
		}
		if got := strings.Fields(strings.ToLower(text(words))); !slices.Equal(got, words) {
			t.Fatalf("the text has the words %q, not %q", got, words)
		}
	}
	words := w.line()
	if b := w.encode(topology.Int, words, false); binary.BigEndian.Uint64(b) != 101 {
		t.Errorf("int is %x, want the line's number, 101", b)
	}
	for _, key := range []bool{true, false} {
		if b := w.encode(topology.JSON, words, key); !json.Valid(b) {
			t.Errorf("%s is no JSON", b)
		}
	}
	if b := w.encode(topology.Bytes, words, true); string(b) != words[1] {
		t.Errorf("the key is %q, want the second word of %q", b, words)
	}
}

// The trial runs what the example shows.
func TestWordCountIsTheExample(t *testing.T) {
	src, err := os.ReadFile("../../examples/wordcount.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example, err := config.Parse("example", src, nil, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	here, err := config.Parse("here", wordCount, nil, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if example.Topology.Hash() != here.Topology.Hash() {
		t.Errorf("examples/wordcount.yaml computes\n%s\nand the trial\n%s", example.Topology, here.Topology)
	}
}

func TestValidate(t *testing.T) {
	good := Config{For: 20 * time.Second, Rate: 500, LeaveAfter: 5 * time.Second, JoinAfter: 11 * time.Second}
	for _, c := range []struct {
		change func(*Config)
		want   string // "": nothing is wrong
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.LeaveAfter, c.JoinAfter = 0, 0 }, ""},
		{func(c *Config) { c.For = 0 }, ""},
		{func(c *Config) { c.Rate = 0 }, "--rate 0"},
		{func(c *Config) { c.Rate = maxRate + 1 }, "want 1 to"},
		{func(c *Config) { c.For = -time.Second }, "--for -1s"},
		{func(c *Config) { c.LeaveAfter = c.For }, "--leave-after 20s: the stream lasts 20s"},
		{func(c *Config) { c.JoinAfter = -1 }, "--join-after -1ns: want a time like 5s"},
	} {
		cfg := good
		c.change(&cfg)
		err := cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

const drawn = `streamworker dev: word-count on an embedded broker  00:05 of 00:20

  lines in       20,687    1,006/s    moves        1    longest gap 19 ms
  records out   165,440    8,046/s    rebalances   2    the 15,191

  instance                    0_0 0_1 1_0 1_1
  worker-1  running   4,046/s  ●   ·   ·   ·
  worker-2  draining  1,900/s  ·   ·   ·   ●
  worker-3  running     900/s  ·   ●   ●  62%
  worker-4  gone

  ● runs here   62% is learned here: how much of the task's state has come

  00:05  task 0_1 moved: worker-2 -> worker-3, gap 19 ms`

func TestRender(t *testing.T) {
	on := func(tasks ...string) map[string]bool {
		m := make(map[string]bool)
		for _, one := range tasks {
			m[one] = true
		}
		return m
	}
	f := frame{
		title: "streamworker dev: word-count on an embedded broker", elapsed: 5500 * time.Millisecond, length: 20 * time.Second, streaming: true,
		in: 20_687, out: 165_440, inPerSecond: 1006, outPerSec: 8046.4, moved: 1, longest: 19 * time.Millisecond, rebalances: 2,
		frequent: []string{"the"}, counts: []int64{15_191}, tasks: []string{"0_0", "0_1", "1_0", "1_1"},
		rows: []row{
			{id: "worker-1", state: control.Running, perSecond: 4046, active: on("0_0")},
			{id: "worker-2", state: control.Draining, perSecond: 1900, active: on("1_1")},
			{id: "worker-3", state: control.Running, perSecond: 900, active: on("0_1", "1_0"), fresh: on("0_1"), learning: map[string]int{"1_1": 62}},
			{id: "worker-4", gone: true},
		},
	}
	events := []string{"  00:05  task 0_1 moved: worker-2 -> worker-3, gap 19 ms"}
	var lines []string
	for _, line := range f.render(events, palette(false)) {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if got := strings.Join(lines, "\n"); got != drawn {
		t.Errorf("got\n%s\nwant\n%s", got, drawn)
	}
	if !strings.Contains(strings.Join(f.render(events, palette(true)), "\n"), "\x1b[1;7;32m●\x1b[0m") {
		t.Error("the task that has just moved does not stand out")
	}
	const plain = "20,687 lines in, 165,440 records out (8,046/s); worker-1 1; worker-2 1 draining; worker-3 2 +1 learning"
	if got := f.plain(); got != plain {
		t.Errorf("plain is %q, want %q", got, plain)
	}
}

// On a terminal each frame is drawn over the one before, and the terminal is left as it was.
func TestScreenDrawsOver(t *testing.T) {
	var b bytes.Buffer
	s := NewScreen(&b, true, false)
	s.draw(frame{title: "one"})
	s.tell(0, "something")
	b.Reset()
	s.draw(frame{title: "two"})
	if got := b.String(); !strings.Contains(got, "\x1b[9A\r") || !strings.Contains(got, "something") {
		t.Errorf("drew %q", got)
	}
	s.close()
	if !strings.HasSuffix(b.String(), showCursor+"\n") {
		t.Error("the cursor stays hidden")
	}
}

func TestProgress(t *testing.T) {
	w := &worker{sizes: map[string]int64{"1_0": 200}}
	for _, c := range []struct {
		l    control.Learning
		want int
	}{
		{control.Learning{Task: "1_0", Lag: -1}, 0},
		{control.Learning{Task: "1_0", Lag: 50}, 75},
		{control.Learning{Task: "1_0", Lag: 300}, 0},
		{control.Learning{Task: "1_0", Lag: 0}, 99},
		{control.Learning{Task: "1_0", Lag: 20, Ready: true}, 100},
		{control.Learning{Task: "1_1", Lag: 20}, 0},
	} {
		if got := w.progress(c.l); got != c.want {
			t.Errorf("%+v: %d%%, want %d%%", c.l, got, c.want)
		}
	}
}
