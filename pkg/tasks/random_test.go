package tasks

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// Rounds without end: each plan is a lawful one for what the instance claims, tasks come and go between it and
// another member, and commits are refused, delayed, or not answered. Nobody dies and the group is never lost, so
// each record has to be counted once.
func TestRandomPlansCountOnce(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			const n = 3
			r := newRig(t, countStreams, n)
			rng := rand.New(rand.NewPCG(seed, 1))
			c := &coordinator{rng: rand.New(rand.NewPCG(seed, 2)), ledger: r.ledger}
			r.cfg.Offsets = c
			r.m = NewManager(r.cfg)
			o := &other{rig: r, cl: r.newClient(kgo.RecordPartitioner(Partitioner()), kgo.ProducerLinger(0))}
			r.start()
			for gen := int32(1); gen <= 40; gen++ {
				r.send(rng.Int32N(n), rng.IntN(40), 3)
				p := o.nextPlan(rng, gen, n)
				c.begin(gen)
				r.plan(gen, p)
				time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
			}
			c.end()
			for gen := int32(41); ; gen++ {
				rep := r.m.Report()
				p := r.repeat(rep)
				done := len(p.Own) == n
				c.begin(gen)
				r.plan(gen, p)
				if done {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			r.awaitCounts()
			var last map[string]int64
			r.await("the changelog has all of it", func() bool {
				last, _ = r.counts("app-counts-changelog")
				for k, n := range r.sent {
					if last[k] < n {
						return false
					}
				}
				return true
			})
			if !maps.Equal(last, r.sent) {
				t.Errorf("the changelog has %v, want %v", last, r.sent)
			}
			if f := r.m.Totals().Failures; f > 0 {
				t.Errorf("%d failures: %v", f, r.events.failed[0].Err)
			}
		})
	}
}

// nextPlan is a lawful plan for what the instance claims.
func (o *other) nextPlan(rng *rand.Rand, gen int32, n int) (p assign.MemberPlan) {
	rep := o.m.Report()
	claimed := map[assign.TaskID]bool{}
	for _, t := range rep.Owned {
		claimed[t] = true
		if rng.IntN(3) == 0 {
			p.Release = append(p.Release, assign.Handover{Task: t, Release: assign.ReleaseID{Generation: gen, Owner: "me"}})
		} else {
			p.Own = append(p.Own, t)
		}
	}
	for _, h := range rep.Releasing {
		claimed[h.Task] = true
		p.Release = append(p.Release, h)
	}
	for _, h := range rep.Taking {
		claimed[h.Task] = true
		p.Take = append(p.Take, h)
	}
	for i := range int32(n) {
		t := id(i)
		if claimed[t] {
			continue
		}
		switch rng.IntN(5) {
		case 0:
			p.Learn = append(p.Learn, t)
		case 1:
			p.Standby = append(p.Standby, t)
		case 2:
			p.Own = append(p.Own, o.vanish(rng, t))
		case 3:
			p.Take = append(p.Take, o.release(rng, t, gen))
		}
	}
	return p
}

// repeat asks for what is claimed, and lets the other member give up the rest.
func (r *rig) repeat(rep assign.Report) (p assign.MemberPlan) {
	p.Own, p.Release, p.Take = rep.Owned, rep.Releasing, rep.Taking
	claimed := map[assign.TaskID]bool{}
	for _, t := range rep.Owned {
		claimed[t] = true
	}
	for _, h := range append(rep.Releasing, rep.Taking...) {
		claimed[h.Task] = true
	}
	for i := range r.cfg.Subtopologies[0].Partitions {
		if t := id(i); !claimed[t] {
			p.Own = append(p.Own, t)
		}
	}
	return p
}

// other is the other member of the group. It never fails.
type other struct {
	*rig
	cl *kgo.Client
}

// work does some of a task's input, as this instance would, and returns the next offset and the changelog's end.
func (o *other) work(rng *rand.Rand, t assign.TaskID) (next, end int64) {
	o.t.Helper()
	ctx := context.Background()
	keys := o.keys[t.Partition]
	from := max(0, o.ledger.offset("in", t.Partition))
	next = from + rng.Int64N(int64(len(keys))-from+1)
	count := map[string]uint64{}
	for _, k := range keys[:from] {
		count[k]++
	}
	for _, k := range keys[from:next] {
		count[k]++
		v := binary.BigEndian.AppendUint64(nil, count[k])
		if err := o.cl.ProduceSync(ctx,
			&kgo.Record{Topic: "app-counts-changelog", Partition: t.Partition, Key: []byte(k), Value: append(make([]byte, 8), v...)},
			&kgo.Record{Topic: "out", Partition: -1, Key: []byte(k), Value: v},
		).FirstErr(); err != nil {
			o.t.Fatal(err)
		}
	}
	log := o.cfg.Subtopologies[0].changelogs(t)
	ends, err := o.logs.Ends(ctx, log)
	if err != nil {
		o.t.Fatal(err)
	}
	return next, ends[log[0]]
}

// release hands the task over.
func (o *other) release(rng *rand.Rand, t assign.TaskID, gen int32) assign.Handover {
	next, end := o.work(rng, t)
	order := assign.ReleaseID{Generation: gen, Owner: "other"}
	o.ledger.write("in", t.Partition, next, handover.Metadata{
		Committer: "other", Token: &handover.Token{Release: order, Positions: []int64{end}},
	})
	return assign.Handover{Task: t, Release: order}
}

// vanish commits what it has done and is gone.
func (o *other) vanish(rng *rand.Rand, t assign.TaskID) assign.TaskID {
	next, _ := o.work(rng, t)
	o.ledger.write("in", t.Partition, next, handover.Metadata{Committer: "other"})
	return t
}

// coordinator fences commits by the generation, as the broker does, and answers them late, wrongly, or not at all.
type coordinator struct {
	*ledger

	mu         sync.Mutex
	rng        *rand.Rand
	generation int32
	calm       bool
}

func (c *coordinator) begin(generation int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation = generation
}

// end ends the faults.
func (c *coordinator) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = true
}

func (c *coordinator) Commit(ctx context.Context, lease handover.Lease, offsets []Offset) (handover.Outcome, error) {
	c.mu.Lock()
	wait, fate := time.Duration(c.rng.IntN(15))*time.Millisecond, c.rng.IntN(8)
	calm := c.calm
	c.mu.Unlock()
	if calm {
		wait, fate = 0, 7
	}
	time.Sleep(wait)
	c.mu.Lock()
	defer c.mu.Unlock()
	if lease.Generation != c.generation || fate == 0 {
		return handover.Declined, fmt.Errorf("refused")
	}
	if fate == 1 { // it may still be written, under this generation
		time.AfterFunc(10*time.Millisecond, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if lease.Generation == c.generation {
				_, _ = c.ledger.Commit(ctx, lease, offsets)
			}
		})
		return handover.Unknown, fmt.Errorf("no answer")
	}
	o, err := c.ledger.Commit(ctx, lease, offsets)
	if fate == 2 {
		return handover.Unknown, fmt.Errorf("the answer is lost")
	}
	return o, err
}
