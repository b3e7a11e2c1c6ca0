package window

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var specs = []Spec{
	{Kind: Tumbling, Size: 10, Advance: 10, Grace: 3}, {Kind: Hopping, Size: 10, Advance: 4}, {Kind: Hopping, Size: 3, Advance: 5},
	{Kind: Sliding, Size: 10, Grace: 2}, {Kind: Session, Size: 5, Grace: 7}, {Kind: Custom, Retain: 5},
}

// The windows of a timestamp are those that hold it.
func TestFirstStart(t *testing.T) {
	for _, s := range specs[:2] {
		for ts := int64(0); ts < 50; ts++ {
			var got, want []int64
			for start := s.FirstStart(ts); start <= ts; start += s.Advance {
				got = append(got, start)
			}
			for start := int64(0); start <= ts; start += s.Advance {
				if ts < s.End(start) {
					want = append(want, start)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: windows of %d start at %v, want %v", s, ts, got, want)
			}
		}
	}
}

func TestClosed(t *testing.T) {
	for _, s := range specs {
		for end := int64(0); end < 40; end++ {
			for now := int64(0); now < 60; now++ {
				if s.Closed(end, now) != (end <= s.LastClosed(now)) {
					t.Errorf("%s with end %d at %d: closed %v, but the last closed end is %d", s, end, now, s.Closed(end, now), s.LastClosed(now))
				}
			}
		}
		if s.Expiry(100) > s.LastClosed(100) {
			t.Errorf("%s expires before it is closed", s)
		}
	}
	for _, c := range []struct {
		spec        Spec
		end, closes int64 // the stream time at which it closes
	}{{specs[0], 20, 23}, {specs[3], 20, 23}, {specs[4], 20, 33}} {
		if c.spec.Closed(c.end, c.closes-1) || !c.spec.Closed(c.end, c.closes) {
			t.Errorf("%s with end %d does not close at %d", c.spec, c.end, c.closes)
		}
	}
}

// Keys are taken apart into what they were made of, and are in order of time.
func TestKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range specs {
		var rows, ends [][]byte
		for range 500 {
			key := make([]byte, rng.IntN(12))
			for i := range key {
				key[i] = byte(rng.IntN(3))
			}
			w := Bounds{Start: rng.Int64N(300)}
			w.End = s.End(w.Start)
			if s.Kind == Session {
				w.End = w.Start + rng.Int64N(300)
			}
			row, entry, out := s.AppendRow(nil, key, w), AppendEnd(nil, key, w), s.AppendKey(nil, key, w)
			for what, parsed := range map[string]func([]byte) ([]byte, Bounds, bool){"row": s.ParseRow, "entry": s.ParseRow, "key": s.ParseKey} {
				b := map[string][]byte{"row": row, "entry": entry, "key": out}[what]
				if k, v, ok := parsed(b); !ok || !bytes.Equal(k, key) || v != w {
					t.Fatalf("%s: %s %x is of %x %s (%v), want %x %s", s, what, b, k, v, ok, key, w)
				}
			}
			if len(out) != len(key)+s.KeyOverhead() {
				t.Fatalf("%s: a key of %d bytes becomes one of %d", s, len(key), len(out))
			}
			if !Result(row) || Result(entry) || Result(ClockKey) {
				t.Fatalf("%s: results are not told from the rest", s)
			}
			rows, ends = append(rows, row), append(ends, entry)
		}
		slices.SortFunc(rows, bytes.Compare)
		slices.SortFunc(ends, bytes.Compare)
		var last Bounds
		var lastKey []byte
		for _, row := range rows {
			key, w, _ := s.ParseRow(row)
			if (!s.ByKey() || bytes.Equal(key, lastKey)) && w.Start < last.Start && w.End <= last.End {
				t.Errorf("%s: %s comes after %s", s, w, last)
			}
			last, lastKey = w, key
		}
		last = Bounds{}
		for _, row := range ends {
			if _, w, _ := s.ParseRow(row); w.End < last.End {
				t.Errorf("%s: by end, %s comes after %s", s, w, last)
			} else {
				last = w
			}
		}
	}
	if c, ok := ParseClock(Clock{Time: 5, Sent: -1}.Append(nil)); !ok || c != (Clock{Time: 5, Sent: -1}) {
		t.Errorf("clock %+v, %v", c, ok)
	}
}

// The rows of a key, and of all, are within bounds.
func TestRows(t *testing.T) {
	for _, s := range specs {
		for _, w := range []Bounds{{Start: 0, End: s.Size}, {Start: 40, End: 40 + s.Size}} {
			row := s.AppendRow(nil, []byte("key"), w)
			for _, key := range [][]byte{nil, []byte("key")} {
				for _, from := range []int64{0, w.Start} {
					for _, to := range []int64{w.Start + 1, math.MaxInt64} {
						if first, behind := s.Rows(key, from, to); bytes.Compare(row, first) < 0 || bytes.Compare(row, behind) >= 0 {
							t.Errorf("%s: %s is not within %d and %d: %x, %x to %x", s, w, from, to, row, first, behind)
						}
					}
				}
			}
			if first, behind := s.Rows([]byte("key"), w.Start+1, w.Start+1); !s.bothBounds() && bytes.Compare(row, first) >= 0 && bytes.Compare(row, behind) < 0 {
				t.Errorf("%s: %s is read although it begins before", s, w)
			}
		}
	}
}

// What a buffer has of a record is taken apart into what it was made of.
func TestBufferedKeys(t *testing.T) {
	p := Place{Time: 1234, Number: 5}
	for _, key := range []string{"", "k", "k\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		for _, row := range [][]byte{p.AppendRecord(nil, []byte(key)), p.AppendEntry(nil, []byte(key)), p.AppendWaiting(nil, []byte(key))} {
			if k, at, ok := ParseBuffered(row); !ok || string(k) != key || at != p {
				t.Errorf("%x is %q %+v (%v), want %q %+v", row, k, at, ok, key, p)
			}
		}
	}
	if at, ok := ParsePlace(p.Append(nil)); !ok || at != p {
		t.Errorf("clock %+v (%v)", at, ok)
	}
}

// FuzzParse reads any bytes as keys of rows, of topics, and as clocks.
func FuzzParse(f *testing.F) {
	f.Add([]byte("k\x00\x00\x00\x01a12345678"))
	f.Add([]byte("t1234567812345678"))
	f.Add([]byte("k\xff\xff\xff\xff12345678"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range specs {
			if key, w, ok := s.ParseRow(b); ok && Result(b) && w.Start >= 0 && !bytes.Equal(s.AppendRow(nil, key, w), b) {
				t.Errorf("%s: %x is %x %s", s, b, key, w)
			}
			if key, w, ok := s.ParseKey(b); ok && !bytes.Equal(s.AppendKey(nil, key, w), b) {
				t.Errorf("%s: key %x is %x %s", s, b, key, w)
			}
		}
		ParseClock(b)
		if key, p, ok := ParseBuffered(b); ok {
			forms := [][]byte{p.AppendRecord(nil, key), p.AppendEntry(nil, key), p.AppendWaiting(nil, key)}
			if !bytes.Equal(forms[strings.IndexByte("ktu", b[0])], b) {
				t.Errorf("%x is %x %+v", b, key, p)
			}
		}
	})
}
