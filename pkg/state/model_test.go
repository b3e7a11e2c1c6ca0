package state

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kgo"
)

// model is what a task's state should be, kept in the dullest way.
type model struct {
	stores    []map[string]string   // as reads should see it
	applied   []map[string]string   // as Pebble should hold it
	frozen    [][]map[string]string // stores as of each freeze that is not applied
	positions []int64
	// history holds the applied content under its positions: what may be found after a crash. No position
	// is used twice.
	history map[string]snapshot
	highest int64 // position
	durable int   // what is found after a crash is this snapshot or a later one
}

type snapshot struct {
	number int
	stores []map[string]string
}

func newModel(stores int) *model {
	m := &model{positions: make([]int64, stores), history: make(map[string]snapshot)}
	for range stores {
		m.stores = append(m.stores, map[string]string{})
		m.applied = append(m.applied, map[string]string{})
	}
	m.remember()
	return m
}

func cloneStores(s []map[string]string) []map[string]string {
	c := make([]map[string]string, len(s))
	for i := range s {
		c[i] = maps.Clone(s[i])
	}
	return c
}

func (m *model) remember() {
	m.history[fmt.Sprint(m.positions)] = snapshot{len(m.history), cloneStores(m.applied)}
}

func (m *model) advance(store, n int) {
	m.highest += int64(n)
	m.positions[store] = m.highest
}

func (m *model) flushed() { m.durable = m.history[fmt.Sprint(m.positions)].number }

func (m *model) discard() {
	m.frozen = nil
	m.stores = cloneStores(m.applied)
}

type modelTest struct {
	*testing.T
	rng    *rand.Rand
	fs     *vfs.MemFS
	cfg    Config
	specs  []StoreSpec
	engine *Engine
	db     *DB
	model  *model
	frozen []*Changes
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (t *modelTest) check(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (t *modelTest) open() {
	t.Helper()
	t.cfg.FS = t.fs
	e, err := NewEngine(t.cfg)
	t.check(err)
	t.engine = e
	t.db, err = e.Open("0_1", t.specs)
	t.check(err)
	t.frozen = nil
}

func (t *modelTest) key() []byte { return fmt.Appendf(nil, "key-%03d", t.rng.IntN(300)) }

func (t *modelTest) value() []byte {
	n := t.rng.IntN(60)
	switch t.rng.IntN(50) {
	case 0:
		n = bigRow + t.rng.IntN(2*maxPage)
	case 1:
		n = 0
	}
	v := make([]byte, n)
	for i := range v {
		v[i] = byte('a' + t.rng.IntN(26))
	}
	return v
}

// compare reads everything, by key and by range.
func (t *modelTest) compare() {
	t.Helper()
	for i, spec := range t.specs {
		s, want := t.db.Store(spec.Name), t.model.stores[i]
		for n := range 300 {
			key := fmt.Appendf(nil, "key-%03d", n)
			t.compareKey(s, want, key)
		}
		t.compareRange(s, want, nil, nil)
	}
	if got := t.db.Checkpoint(); !slices.Equal(got, t.model.positions) {
		t.Fatalf("checkpoint %v, want %v", got, t.model.positions)
	}
}

func (t *modelTest) compareKey(s *Store, want map[string]string, key []byte) {
	t.Helper()
	got, ok, err := s.Get(key)
	t.check(err)
	if v, there := want[string(key)]; ok != there || string(got) != v {
		t.Fatalf("get %s: %.40q %v, want %.40q %v", key, got, ok, v, there)
	}
}

func (t *modelTest) compareRange(s *Store, want map[string]string, from, to []byte) {
	t.Helper()
	it := s.Range(from, to)
	var got []string
	for it.Next() {
		got = append(got, string(it.Key())+"="+string(it.Value()))
	}
	t.check(it.Err())
	t.check(it.Close())
	var expect []string
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if k >= string(from) && (to == nil || k < string(to)) {
			expect = append(expect, k+"="+want[k])
		}
	}
	if !slices.Equal(got, expect) {
		t.Fatalf("range %s-%s: %d rows, want %d\n%.200s\n%.200s", from, to, len(got), len(expect), got, expect)
	}
	most := len(expect)
	if t.rng.IntN(2) == 0 {
		most = min(most, 1+t.rng.IntN(5))
	}
	got = nil
	t.check(s.Scan(from, to, func(key, value []byte) bool {
		got = append(got, string(key)+"="+string(value))
		return len(got) < most
	}))
	if !slices.Equal(got, expect[:most]) {
		t.Fatalf("scan %s-%s: %d rows, want %d\n%.200s\n%.200s", from, to, len(got), most, got, expect[:most])
	}
}

func (t *modelTest) apply() {
	if len(t.frozen) == 0 {
		return
	}
	m := t.model
	for i := range m.positions {
		m.advance(i, 1+t.rng.IntN(9))
	}
	t.check(t.db.Apply(t.frozen[0], m.positions))
	t.frozen = t.frozen[1:]
	m.applied, m.frozen = m.frozen[0], m.frozen[1:]
	m.remember()
}

func (t *modelTest) changelog() {
	m := t.model
	if len(t.frozen) > 0 || t.rng.IntN(2) == 0 {
		t.db.Discard()
		t.frozen = nil
		m.discard()
	} else if c := t.db.Freeze(); c != nil {
		t.frozen = append(t.frozen, c)
		m.frozen = append(m.frozen, cloneStores(m.stores))
		t.apply()
	}
	store := t.rng.IntN(len(t.specs))
	var recs []*kgo.Record
	offset := m.positions[store]
	for range t.rng.IntN(40) {
		offset += int64(1 + t.rng.IntN(3))
		r := &kgo.Record{Key: t.key(), Value: t.value(), Offset: offset}
		if t.rng.IntN(4) == 0 {
			r.Value = nil
			delete(m.applied[store], string(r.Key))
		} else {
			m.applied[store][string(r.Key)] = string(r.Value)
		}
		recs = append(recs, r)
	}
	m.highest = max(m.highest, offset)
	m.advance(store, 1+t.rng.IntN(3))
	t.check(t.db.ApplyChangelog(store, recs, m.positions[store], m.positions[store]+100))
	m.discard()
	m.remember()
}

func (t *modelTest) crash() {
	clone := t.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: t.rng.IntN(101), RNG: rand.New(rand.NewPCG(t.rng.Uint64(), 1))})
	t.check(t.engine.Close())
	t.fs = clone
	t.open()
	m := t.model
	m.positions = t.db.Checkpoint()
	found, ok := m.history[fmt.Sprint(m.positions)]
	if !ok {
		t.Fatalf("after a crash the positions are %v, which never were", m.positions)
	}
	if found.number < m.durable {
		t.Fatalf("after a crash the state is number %d at %v, but number %d was flushed", found.number, m.positions, m.durable)
	}
	m.applied = cloneStores(found.stores)
	m.discard()
	t.compare()
}

func (t *modelTest) step() {
	m := t.model
	i := t.rng.IntN(len(t.specs))
	s := t.db.Store(t.specs[i].Name)
	op := t.rng.IntN(1000)
	switch {
	case op < 400:
		t.compareKey(s, m.stores[i], t.key())
	case op < 750:
		k, v := t.key(), t.value()
		s.Put(k, v)
		m.stores[i][string(k)] = string(v)
	case op < 850:
		k := t.key()
		s.Delete(k)
		delete(m.stores[i], string(k))
	case op < 880: // read, change in place, write
		k := t.key()
		v, ok, err := s.Get(k)
		t.check(err)
		if ok && len(v) > 0 {
			v[0] = 'Z'
			v = append(v, 'x')
			s.Put(k, v)
			m.stores[i][string(k)] = string(v)
		}
	case op < 920:
		if c := t.db.Freeze(); c != nil {
			t.frozen = append(t.frozen, c)
			m.frozen = append(m.frozen, cloneStores(m.stores))
			t.compareChanges(c)
		}
	case op < 960:
		t.apply()
	case op < 970:
		a, b := t.key(), t.key()
		if bytes.Compare(a, b) > 0 {
			a, b = b, a
		}
		t.compareRange(s, m.stores[i], a, b)
	case op < 980:
		t.changelog()
	case op < 984:
		t.db.Discard()
		t.frozen = nil
		m.discard()
	case op < 987:
		t.check(t.db.Flush())
		m.flushed()
	case op < 990:
		t.check(t.db.Close())
		m.flushed()
		var err error
		t.db, err = t.engine.Open("0_1", t.specs)
		t.check(err)
		t.frozen = nil
		m.discard()
	case op < 992:
		t.check(t.db.Reset("test", i))
		t.frozen = nil
		m.applied[i], m.positions[i] = map[string]string{}, 0
		m.discard()
		m.remember()
	case op < 995:
		t.crash()
	case op < 998:
		t.compare()
	default:
		t.check(t.engine.Close())
		m.flushed()
		t.open()
		m.discard()
	}
}

// compareChanges checks that the last changes hold the difference to what was frozen before.
func (t *modelTest) compareChanges(c *Changes) {
	t.Helper()
	m := t.model
	before := m.applied
	if n := len(m.frozen); n > 1 {
		before = m.frozen[n-2]
	}
	after := cloneStores(before)
	n := 0
	var last []byte
	lastStore := -1
	c.Each(func(store int, key, value []byte) {
		if store == lastStore && bytes.Compare(last, key) >= 0 {
			t.Fatalf("changes are not in order: %s, %s", last, key)
		}
		last, lastStore = key, store
		n++
		if value == nil {
			delete(after[store], string(key))
		} else {
			after[store][string(key)] = string(value)
		}
	})
	if n != c.Len() {
		t.Fatalf("Len says %d, Each gave %d", c.Len(), n)
	}
	for i := range after {
		if !maps.Equal(after[i], m.stores[i]) {
			t.Fatalf("store %d: the changes do not lead to what was frozen", i)
		}
	}
}

const steps = 1500

// TestModel compares random operations, crashes among them, with the model.
func TestModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 0))
			mt := &modelTest{T: t, rng: rng, fs: vfs.NewCrashableMem(), model: newModel(2),
				specs: []StoreSpec{{Name: "a", TopicID: [16]byte{1}}, {Name: "b", TopicID: [16]byte{2}}},
				cfg: Config{Dir: "state", Logger: quiet(), BallastBytes: -1, BlockCacheBytes: 1 << 20, MemtableBytes: 1,
					RowCacheBytes: []int64{1, 64 << 10, 1 << 30}[seed%3], Now: time.Now}}
			mt.open()
			for range steps {
				mt.step()
			}
			mt.compare()
			mt.check(mt.engine.Close())
		})
	}
}
