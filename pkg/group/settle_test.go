package group

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// A round that is wanted while another one ends waits until all members can have their plans.
func TestRoundsDoNotFollowAtOnce(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		a := k.newInstance(k.config(1, true), "a")
		var soonest atomic.Int64
		soonest.Store(int64(time.Hour))
		a.edit = func(*assign.Report) {
			a.m.mu.Lock()
			after := time.Since(a.m.mu.planned)
			a.m.mu.Unlock()
			soonest.Store(min(soonest.Load(), int64(after)))
		}
		a.run()
		for n := range 5 {
			eventually(t, "the next round", func() bool { return len(a.generations()) > n })
			a.m.ForceRound()
		}
		eventually(t, "the last round", func() bool { return len(a.generations()) > 5 })
		if d := time.Duration(soonest.Load()); d < settle {
			t.Errorf("a member joined %v after a plan", d)
		}
	})
}

// A member that a round has left without a plan tells the others of the next one, so that they join before they hear of
// it by their heartbeats.
func TestMissedPlanHurriesTheOthers(t *testing.T) {
	k := fakeCluster(t)
	cfg := k.config(4, true)
	cfg.Session, cfg.Heartbeat, cfg.RebalanceTimeout = 5*time.Minute, 2*time.Minute, 5*time.Minute
	var mu sync.Mutex
	var all []*instance
	hurry := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, in := range all {
			in.m.Rejoin()
		}
	}
	var told atomic.Int32                          // by b
	for _, name := range []string{"a", "b", "c"} { // a leads
		cfg.JoinWaiting = func() {
			if name == "b" {
				told.Add(1)
			}
			hurry()
		}
		in := k.newInstance(cfg, name)
		mu.Lock()
		all = append(all, in)
		mu.Unlock()
		in.run()
		eventually(t, "the group rests", func() bool { return settled(4, all...) })
	}
	b := all[1]

	var missed atomic.Bool
	k.fake.ControlKey(keySyncGroup, func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.fake.KeepControl()
		sync := req.(*kmsg.SyncGroupRequest)
		if sync.MemberID != b.id() || !missed.CompareAndSwap(false, true) {
			return nil, nil, false
		}
		resp := sync.ResponseKind().(*kmsg.SyncGroupResponse)
		resp.ErrorCode = kerr.RebalanceInProgress.Code
		return resp, nil, true
	})
	b.change(func(*assign.Report) {})
	eventually(t, "b misses the plan of its round", func() bool {
		if !missed.Load() {
			hurry()
		}
		return missed.Load()
	})
	eventually(t, "b has a plan with its change", func() bool { return b.seen() == 1 && settled(4, all...) })
	if told.Load() < 2 {
		t.Error("b has told the others only of its first join")
	}
}
