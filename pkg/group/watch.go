package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// watch keeps the clock, asks the coordinator when kgo does not, and removes former members, until ctx ends.
func (m *Membership) watch(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(m.cfg.Heartbeat / 4)
	defer tick.Stop()
	joinWaits := m.joinWaits
	var settled <-chan time.Time
	var asking atomic.Bool
	var asked time.Time
	ask := func() {
		if asking.CompareAndSwap(false, true) {
			asked = time.Now()
			wg.Go(func() {
				defer asking.Store(false)
				m.ask(ctx)
			})
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-joinWaits:
			joinWaits = nil
			wg.Go(func() { m.removeFormer(ctx) })
		case <-m.hurry:
			ask()
		case <-m.wish:
			settled = time.After(m.settling(time.Now()))
		case <-settled:
			settled = nil
			m.begin()
		case <-tick.C:
			now := time.Now()
			m.expire(now)
			if m.silent(now) && now.Sub(asked) >= m.cfg.Heartbeat {
				ask()
			}
		}
	}
}

// expire ends the lease if the group may have removed us.
func (m *Membership) expire(now time.Time) {
	if !m.Expired(now) {
		return
	}
	m.callbacks.Lock()
	if m.Expired(now) { // nothing has come while we waited for the lock
		m.lost(fmt.Errorf("%w: session timeout %v, rebalance timeout %v", ErrSessionOver, m.cfg.Session, m.cfg.RebalanceTimeout), true)
	}
	m.callbacks.Unlock()
	m.rejoin() // if it was a false alarm, the session goes on: begin a round for a new lease
}

// silent says whether the coordinator has not answered for longer than a heartbeat should take. kgo sends
// no heartbeats while its join or sync waits, which may be longer than a session.
func (m *Membership) silent(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.clock.member && now.Sub(m.mu.clock.alive) >= m.cfg.Heartbeat*5/4
}

// ask sends a heartbeat on a connection of its own: to prove that we live, to learn whether we still are in
// the group, and whether a round is under way.
func (m *Membership) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Session/3)
	defer cancel()
	id, generation := m.clientMember()
	if id == "" {
		return
	}
	sent := time.Now()
	err := m.cfg.Coordinator.heartbeat(ctx, id, generation)
	switch {
	case err == nil, errors.Is(err, kerr.RebalanceInProgress):
		m.mu.Lock()
		if m.mu.memberID == id {
			m.mu.clock.answered(sent)
		}
		m.mu.Unlock()
		if err != nil {
			m.rejoin()
		}
	case errors.Is(err, kerr.UnknownMemberID):
		m.callbacks.Lock()
		defer m.callbacks.Unlock()
		m.mu.Lock()
		same := m.mu.memberID == id
		m.mu.Unlock()
		if same {
			m.lost(fmt.Errorf("%w: %w", ErrExpelled, err), true)
		}
	default:
		// ILLEGAL_GENERATION among others: the round is over and the answer to our join is on its way.
	}
}

// removeFormer removes the members that this instance was before it restarted. Our join waits at the
// coordinator by now, so the round that this starts, or lets end, has us in it.
func (m *Membership) removeFormer(ctx context.Context) {
	ids := m.former.list()
	deadline := time.Now().Add(m.cfg.Session) // they have expired by then
	for len(ids) > 0 {
		err := m.cfg.Coordinator.Leave(ctx, "the instance restarted under a new member id", ids...)
		if err == nil {
			m.cfg.Logger.Info("removed the former member of this instance from the group", "former", ids)
			err = m.former.removed(ids)
			ids = nil
		}
		if err != nil && ctx.Err() == nil {
			m.cfg.Logger.Warn("former member", "former", ids, "error", err)
		}
		if len(ids) == 0 || time.Now().After(deadline) {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(m.cfg.Heartbeat / 4):
		}
	}
	m.cfg.JoinWaiting()
}

// hooks hear of the requests that kgo sends for the group, and of errors that end a session. (A client that
// consumes in a group has no callback for a session that is over by its own clock.)
type hooks struct{ m *Membership }

var (
	_ kgo.HookNewClient        = hooks{}
	_ kgo.HookBrokerWrite      = hooks{}
	_ kgo.HookBrokerE2E        = hooks{}
	_ kgo.HookGroupManageError = hooks{}
)

// Keys of requests.
const (
	keyJoinGroup = 11
	keyHeartbeat = 12
	keySyncGroup = 14
)

// OnNewClient takes the client before kgo starts the goroutines that call us.
func (h hooks) OnNewClient(client *kgo.Client) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.m.mu.client = client
}

// OnBrokerWrite notes that a join has been sent.
func (h hooks) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key != keyJoinGroup || err != nil {
		return
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	// A join without a member id is answered with one at once; the next one waits.
	if h.m.mu.identified {
		h.m.mu.clock.waiting = true
		select {
		case <-h.m.joinWaits:
			if h.m.mu.missed {
				h.m.mu.missed = false
				h.m.cfg.JoinWaiting()
			}
		default:
			close(h.m.joinWaits)
		}
	}
}

// OnBrokerE2E notes answers. Their error codes are not known here. Those that say that the member is
// expelled end kgo's session and come by OnGroupManageError. An answer of a broker that does not
// coordinate the group any more proves little, but does no harm: the next coordinator starts all sessions
// anew when it has loaded the group.
func (h hooks) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	now := time.Now()
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	clock := &h.m.mu.clock
	switch {
	case key == keyHeartbeat && e2e.Err() == nil:
		clock.answered(now.Add(-e2e.DurationE2E()))
	case (key == keyJoinGroup || key == keySyncGroup) && e2e.Err() == nil:
		// These wait at the coordinator, and the session starts when it answers.
		clock.answered(now)
	case key == keyJoinGroup:
		clock.waiting = false
	}
}

// OnGroupManageError notes why a session, or an attempt to join, has ended.
func (h hooks) OnGroupManageError(err error) { h.m.refused(err) }
