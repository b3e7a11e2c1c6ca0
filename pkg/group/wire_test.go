package group

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

var update = flag.Bool("update", false, "write the golden files of the current wire version")

func task(sub, partition int32) assign.TaskID {
	return assign.TaskID{Subtopology: sub, Partition: partition}
}

const uuidA, uuidB = "6f1c2b1e-7a50-4c1d-9a55-0d9be1a7c001", "aa000000-0000-4000-8000-0000000000bb"

// fullReport uses every field.
func fullReport() assign.Report {
	return assign.Report{
		Instance:    "host-7",
		Incarnation: assign.Incarnation{StartMs: 1_790_000_000_123, Random: 0xfeedfacecafebeef, Starts: 3},
		Owned:       []assign.TaskID{task(0, 0), task(0, 1), task(0, 2), task(0, 700), task(2, 5)},
		Releasing:   []assign.Handover{{Task: task(0, 9), Release: assign.ReleaseID{Generation: 41, Owner: "app-" + uuidA}}},
		Taking: []assign.Handover{
			{Task: task(0, 3), Release: assign.ReleaseID{Generation: 42, Owner: "app-" + uuidB}},
			{Task: task(0, 4), Release: assign.ReleaseID{Generation: 42, Owner: "app-" + uuidA}},
			{Task: task(1, 4), Release: assign.ReleaseID{Generation: 40, Owner: "S1"}},
		},
		Learning:   []assign.Copy{{Task: task(0, 6), Position: 1 << 40}, {Task: task(0, 8), Position: 12345}},
		Ready:      []assign.TaskID{task(0, 6)},
		Standby:    []assign.Copy{{Task: task(0, 11), Position: 0}},
		Local:      []assign.Copy{{Task: task(0, 12), Position: math.MaxInt64}},
		Leaving:    true,
		DeadlineMs: 1_790_000_600_000,
		Capacity:   4,
		Labels:     map[string]string{"pool": "blue", "zone": "", "a": "b"},
		Rack:       "r1",
		ConfigHash: 0x0123456789abcdef,
		Nonce:      77,
	}
}

func fullPlan() assign.MemberPlan {
	r := fullReport()
	return assign.MemberPlan{
		Own:        r.Owned,
		Take:       r.Taking,
		Release:    r.Releasing,
		Learn:      []assign.TaskID{task(0, 20), task(0, 21)},
		Standby:    []assign.TaskID{task(3, 0)},
		Superseded: true,
	}
}

// A field that this build does not know is left unread; one out of order or cut off is a mistake.
func TestLaterFields(t *testing.T) {
	b := EncodeReport(fullReport())
	want := fullReport()
	if got, err := DecodeReport(append(slices.Clone(b), 99, 3, 'n', 'e', 'w')); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, more := range [][]byte{{0, 0}, {99, 0, 98, 0}, {99, 0, 99, 0}, {99, 4, 'n'}, {laterStuck, 1, 7}} {
		if _, err := DecodeReport(append(slices.Clone(b), more...)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v behind a report: %v", more, err)
		}
	}
}

func TestReportRoundTrip(t *testing.T) {
	stuck := fullReport()
	stuck.Stuck = []assign.TaskID{task(0, 6), task(0, 12)}
	for _, want := range []assign.Report{{}, fullReport(), stuck, {DeadlineMs: -1, Capacity: math.MaxUint32, Nonce: math.MaxUint32}} {
		got, err := DecodeReport(EncodeReport(want))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

func TestPlanRoundTrip(t *testing.T) {
	for _, want := range []assign.MemberPlan{{}, fullPlan()} {
		got, err := DecodePlan(EncodePlan(want))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// Kafka starts a round when the bytes of a join differ: equal state must give equal bytes.
func TestBytesDoNotDependOnOrder(t *testing.T) {
	want := EncodeReport(fullReport())
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		r := fullReport()
		shuffle(rnd, r.Owned)
		shuffle(rnd, r.Taking)
		shuffle(rnd, r.Learning)
		r.Owned = append(r.Owned, r.Owned[0])
		if got := EncodeReport(r); !slices.Equal(got, want) {
			t.Fatalf("got  %x\nwant %x", got, want)
		}
	}
}

func shuffle[E any](rnd *rand.Rand, s []E) {
	rnd.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}

// The golden bytes of every version ever released must stay readable; those of the current version must
// also be what is written.
func TestGoldenBytes(t *testing.T) {
	report, plan := fullReport(), fullPlan()
	for name, c := range map[string]struct {
		encoded []byte
		want    any
		decode  func([]byte) (any, error)
	}{
		"report": {EncodeReport(report), report, func(b []byte) (any, error) { return DecodeReport(b) }},
		"plan":   {EncodePlan(plan), plan, func(b []byte) (any, error) { return DecodePlan(b) }},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "wire", fmt.Sprintf("%s_v%d.hex", name, wireVersion))
			if *update {
				if err := os.WriteFile(file, []byte(hex.EncodeToString(c.encoded)+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden, err := hex.DecodeString(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(golden, c.encoded) {
				t.Errorf("bytes changed without a new version\ngot  %x\nwant %x", c.encoded, golden)
			}
			if got, err := c.decode(golden); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestTaskSetSize(t *testing.T) {
	all := make([]assign.TaskID, 10_000)
	for i := range all {
		all[i] = task(0, int32(i))
	}
	var every2nd, every1000th []assign.TaskID
	for i := 0; i < len(all); i += 2 {
		every2nd = append(every2nd, all[i])
	}
	for i := 17; i < len(all); i += 1000 {
		every1000th = append(every1000th, all[i])
	}
	for _, c := range []struct {
		name  string
		tasks []assign.TaskID
		most  int
	}{
		{"none", nil, 1},
		{"all: one range", all, 6},
		{"every second: a bitmap", every2nd, 10_000/8 + 6},
		{"ten of them: two bytes each", every1000th, 23},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := appendTasks(nil, c.tasks)
			if len(b) > c.most {
				t.Errorf("%d bytes, want at most %d", len(b), c.most)
			}
			r := &reader{b: b}
			if got := r.taskSet(); r.end() != nil || !slices.Equal(got, c.tasks) {
				t.Errorf("read back as %v, %v", got, r.err)
			}
		})
	}
}

func TestRandomTaskSets(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		want := map[assign.TaskID]bool{}
		var tasks []assign.TaskID
		spread := int32(1) << rnd.IntN(20)
		for range rnd.IntN(200) {
			id := task(rnd.Int32N(4)*rnd.Int32N(1000), rnd.Int32N(spread))
			want[id] = true
			tasks = append(tasks, id)
		}
		r := &reader{b: appendTasks(nil, tasks)}
		got := r.taskSet()
		if err := r.end(); err != nil || len(got) != len(want) || !slices.IsSortedFunc(got, assign.TaskID.Compare) {
			t.Fatalf("%d tasks read, %d written: %v", len(got), len(want), err)
		}
		for _, id := range got {
			if !want[id] {
				t.Fatalf("task %v was not written", id)
			}
		}
	}
}

func TestIDsThatCannotBe(t *testing.T) {
	tasks := []assign.TaskID{task(-1, 0), task(0, -5), task(math.MaxInt32, 1), task(1, math.MaxInt32), task(1, 2)}
	r, err := DecodeReport(EncodeReport(assign.Report{
		Owned:     tasks,
		Local:     []assign.Copy{{Task: tasks[0], Position: 1}, {Task: tasks[4], Position: -7}},
		Releasing: []assign.Handover{{Task: tasks[1]}},
	}))
	want := assign.Report{Owned: tasks[4:], Local: []assign.Copy{{Task: tasks[4]}}}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestBadUserData(t *testing.T) {
	good := EncodeReport(fullReport())
	nextVersion := slices.Clone(good)
	nextVersion[1]++
	for _, c := range []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, ErrForeign},
		{"another client's", []byte("\x00\x00\x00\x01 a sticky assignor"), ErrForeign},
		{"a plan", EncodePlan(fullPlan()), ErrForeign},
		{"the next version", nextVersion, ErrVersion},
		{"trailing bytes", append(slices.Clone(good), 0), ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := DecodeReport(c.data); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	for n := range good {
		if _, err := DecodeReport(good[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", n, len(good))
		}
	}
}

// Plans may have fields of a later build too.
func TestPlanOfALaterBuild(t *testing.T) {
	b := EncodePlan(fullPlan())
	if p, err := DecodePlan(append(slices.Clone(b), 5, 0, 0x80, 0x01, 3, 'n', 'e', 'w')); err != nil || !reflect.DeepEqual(p, fullPlan()) {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := DecodePlan(append(b, 7, 0, 5, 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("out of order: %v", err)
	}
}

// A few bytes must not stand for billions of tasks or for gigabytes.
func TestBombs(t *testing.T) {
	run := func(header ...byte) []byte { return append([]byte{1, 0}, header...) } // one subtopology, 0
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x07}
	for name, set := range map[string][]byte{
		"a run of two billion": append(run(1<<1|bodyRanges, 1), huge...),
		"a partition at the end of the range": append(append(run(1<<1|bodyRanges),
			0xff, 0xff, 0xff, 0xff, 0x0f), 0xff, 0xff, 0x07),
		"many runs":             append([]byte{1, 0}, slices.Repeat(huge, 3)...),
		"many subtopologies":    huge,
		"a bitmap out of range": append(append(run(1<<1|bodyBitmap), huge...), 0xff),
		"a far subtopology":     {2, 0xfe, 0xff, 0xff, 0xff, 0x07, 2, 0, 0xfe, 0xff, 0xff, 0xff, 0x07, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reader{b: set}
			if got := r.taskSet(); !errors.Is(r.err, ErrCorrupt) {
				t.Errorf("read as %d tasks, %v", len(got), r.err)
			}
		})
	}
	t.Run("runs that add up", func(t *testing.T) {
		full := appendTasks(nil, func() (tasks []assign.TaskID) {
			for p := range int32(maxTasks) {
				tasks = append(tasks, task(0, p))
			}
			return tasks
		}())
		r := &reader{b: slices.Concat(full, full)}
		if got := r.taskSet(); r.err != nil || len(got) != maxTasks {
			t.Fatalf("%d tasks, %v", len(got), r.err)
		}
		if r.taskSet(); !errors.Is(r.err, ErrCorrupt) {
			t.Errorf("got %v", r.err)
		}
	})
}

// roundTrips fails if what was accepted cannot be written and read the same.
func roundTrips(t *testing.T, r assign.Report) {
	t.Helper()
	if again, err := DecodeReport(EncodeReport(r)); err != nil || !reflect.DeepEqual(r, again) {
		t.Fatalf("%+v\nreads back as\n%+v, %v", r, again, err)
	}
}

// Damaged reports are refused or are other reports. (What fuzzing does, without its time.)
func TestDamagedReports(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	good := EncodeReport(fullReport())
	accepted := 0
	for range 50_000 {
		b := slices.Clone(good)
		for range 1 + rnd.IntN(3) {
			at := 2 + rnd.IntN(len(b)-2)
			switch rnd.IntN(3) {
			case 0:
				b[at] = byte(rnd.Uint32())
			case 1:
				b = slices.Delete(b, at, at+1)
			default:
				b = slices.Insert(b, at, byte(rnd.Uint32()))
			}
		}
		if r, err := DecodeReport(b); err == nil {
			accepted++
			roundTrips(t, r)
		}
	}
	if accepted == 0 {
		t.Error("none was accepted: the test tests nothing")
	}
}

func FuzzReport(f *testing.F) {
	f.Add(EncodeReport(fullReport()))
	f.Add(EncodeReport(assign.Report{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeReport(data)
		if err != nil {
			if !errors.Is(err, ErrForeign) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		roundTrips(t, r)
	})
}

func FuzzPlan(f *testing.F) {
	f.Add(EncodePlan(fullPlan()))
	f.Add(EncodePlan(assign.MemberPlan{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodePlan(data)
		if err != nil {
			return
		}
		again, err := DecodePlan(EncodePlan(p))
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%+v\nreads back as\n%+v, %v", p, again, err)
		}
	})
}

// The envelope comes from anyone who may join the group.
func FuzzSubscription(f *testing.F) {
	f.Add(encodeSubscription([]string{"in"}, fullReport()))
	f.Add(encodeAssignment([]Subtopology{{Topics: []string{"in"}, Partitions: 800}}, fullPlan(), true))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = decodeSubscription(data)
		_, _ = decodeAssignment(data)
	})
}
