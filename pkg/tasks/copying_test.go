package tasks

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/state"
)

// A changelog is deleted and made anew while a learner reads it. Positions in the old one mean nothing in the new
// one: its state is dropped and replayed from the start.
func TestLearnerOfAChangelogThatWasMadeAnew(t *testing.T) {
	r := newRig(t, countStreams, 1).start()
	change := func(key string, n byte) {
		t.Helper()
		v := []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, n}
		if err := r.client.ProduceSync(t.Context(), &kgo.Record{Topic: "app-counts-changelog", Key: []byte(key), Value: v}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		change("old", 1)
	}
	r.plan(1, assign.MemberPlan{Learn: []assign.TaskID{id(0)}})
	r.await("the learner has it", func() bool { return r.localPosition(id(0)) == 3 })
	if err := r.cluster.DeleteTopic("app-counts-changelog"); err != nil {
		t.Fatal(err)
	}
	if err := r.cluster.CreateTopic("app-counts-changelog", 1, nil); err != nil {
		t.Fatal(err)
	}
	cl := r.newClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	r.client = cl
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		change(key, 2)
	}
	r.await("the learner has what is in the new one", func() bool { return r.localPosition(id(0)) == 5 })
	got := make(chan int, 1)
	r.inside(func() {
		task := r.m.slots[id(0)].task
		task.box.post(func() {
			n := 0
			for _, key := range []string{"old", "a", "b", "c", "d", "e"} {
				if _, ok, err := task.db.Store("counts").Get([]byte(key)); ok && err == nil {
					n++
				}
			}
			got <- n
		})
	})
	if n := <-got; n != 5 {
		t.Fatalf("%d keys, want those of the new changelog only", n)
	}
}

// A process is suspended, with a learner, for longer than tombstones last: a key may have been deleted and forgotten meanwhile.
func TestLearnerThatWasSuspended(t *testing.T) {
	var later atomic.Int64
	r := newRig(t, countStreams, 1, func(c *Config) {
		c.Subtopologies[0].Stores[0].Retention = time.Hour
		var err error
		c.Engine, err = state.NewEngine(state.Config{
			Dir: t.TempDir(), BallastBytes: -1, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
		})
		if err != nil {
			t.Fatal(err)
		}
	}).start()
	change := func(key string) {
		t.Helper()
		v := []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}
		if err := r.client.ProduceSync(t.Context(), &kgo.Record{Topic: "app-counts-changelog", Key: []byte(key), Value: v}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	change("old")
	r.plan(1, assign.MemberPlan{Learn: []assign.TaskID{id(0)}})
	r.await("the learner has it", func() bool { return r.localPosition(id(0)) == 1 })
	later.Store(int64(2 * time.Hour))
	if err := r.cluster.DeleteRecords("app-counts-changelog", 0, 1); err != nil {
		t.Fatal(err)
	}
	change("new")
	has := func(key string) bool {
		got := make(chan bool, 1)
		r.inside(func() {
			task := r.m.slots[id(0)].task
			task.box.post(func() {
				_, ok, err := task.db.Store("counts").Get([]byte(key))
				got <- ok && err == nil
			})
		})
		return <-got
	}
	r.await("the learner reads on", func() bool { return has("new") })
	if has("old") {
		t.Error("the learner has a key that is in no changelog any more")
	}
}
