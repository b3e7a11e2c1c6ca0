package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Handler is the part of an instance that has tasks. Its methods are called one at a time and must return
// quickly: heartbeats wait for Plan, the whole group waits for Report. They may call ForceRound, not Leave.
type Handler interface {
	// Report says what runs at this moment. It is called at every join. Its Nonce is added to that of the
	// membership and may stay zero.
	Report() assign.Report

	// Plan hands over what the leader told this member in a round. Together with memberID and generation it
	// is the member's lease, until the next Plan or Lost. A join with nothing new makes no round; it ends with
	// the plan of the running generation once more.
	Plan(memberID string, generation int32, plan assign.MemberPlan)

	// Assigned is called in place of Plan after a round of another protocol (Config.UpgradeFrom): the tasks are all that
	// the member runs from now on.
	Assigned(memberID string, generation int32, tasks []assign.TaskID)

	// Revoke has the tasks that which names stop and commit what they have done. It returns at once, and calls done when
	// that and all releases under way have ended. It is called under Config.UpgradeFrom only.
	Revoke(which func(assign.TaskID) bool, done func())

	// Lost says that the lease is over, as others may have been given the tasks. It is called once for each
	// lease that is lost; the next Plan comes from a round in which nothing of the lost lease counted.
	// The error wraps ErrExpelled, ErrSessionOver or ErrUnreadablePlan.
	Lost(err error)
}

// Membership is an instance's place in the group.
//
// Two locks: callbacks is held while the handler is called, so that the decision for a call and the call
// are one step; mu guards the fields and is held for moments only. callbacks is taken first.
type Membership struct {
	cfg     Config
	handler Handler
	leader  *leader
	topics  []string
	former  *formerIDs

	joinWaits chan struct{} // closed when our first join waits at the coordinator
	hurry     chan struct{} // holds one wish to ask the coordinator for a round under way
	wish      chan struct{} // holds one wish for a round
	done      chan struct{} // closed when Run has ended

	callbacks sync.Mutex

	mu struct {
		sync.Mutex
		client *kgo.Client
		stop   context.CancelCauseFunc // ends Run; nil before it

		clock      clock
		memberID   string    // of the lease
		generation int32     // of the lease
		admitted   bool      // there has been a lease
		losing     bool      // the handler is being told that the lease is over
		losses     int       // leases that were lost
		inSession  bool      // kgo has no join or sync under way and would heed ForceRebalance
		identified bool      // the join under way names our member id
		stale      bool      // the join under way reports what a lease that is lost since had
		forced     bool      // a round is wanted that no join has asked for
		planned    time.Time // when the last plan came
		missing    bool      // the join under way, or the one before it, has brought no plan yet
		missed     bool      // the join under way follows one that brought no plan
		nonce      uint32

		protocol string          // that the group speaks; "": not known yet
		leaving  bool            // the report of the join under way says so
		claimed  []assign.TaskID // tasks that the join under way claims under a cooperative protocol of plain consumers
		told     []assign.TaskID // tasks that the lease names as our own
	}
}

// NewMembership returns a membership that has yet to Run.
func NewMembership(cfg Config, h Handler) (*Membership, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("membership of group %s: %w", cfg.Group, err)
	}
	former, err := openFormer(cfg.FormerMemberFile)
	if err != nil {
		return nil, err
	}
	cfg.Logger = cfg.Logger.With("component", "group")
	m := &Membership{
		cfg:     cfg,
		handler: h,
		leader: &leader{
			group:  cfg.Group,
			subs:   cfg.Subtopologies,
			tasks:  tasksOf(cfg.Subtopologies),
			policy: cfg.Policy,
			racks:  cfg.InputRacks,
			limit:  recordLimit,
			logger: cfg.Logger,
		},
		topics:    topicsOf(cfg.Subtopologies),
		former:    former,
		joinWaits: make(chan struct{}),
		hurry:     make(chan struct{}, 1),
		wish:      make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
	m.mu.clock = clock{session: cfg.Session, heartbeat: cfg.Heartbeat, rebalance: cfg.RebalanceTimeout}
	return m, nil
}

// errLeaving ends Run from Leave.
var errLeaving = errors.New("leaving the group")

// Run joins the group and stays in it until ctx ends or Leave is called; then it returns nil. It does not
// leave the group: the coordinator keeps the member until its session is over, or Leave is called, or a
// restart removes it. It returns an error that wraps ErrNotAdmitted if the group refuses the instance.
// It may be called once.
func (m *Membership) Run(ctx context.Context) error {
	defer close(m.done)
	ctx, stop := context.WithCancelCause(ctx)
	m.mu.Lock()
	m.mu.stop = stop
	m.mu.Unlock()

	// The kgo client lives in ctx. kgo's Close leaves the group of a dynamic member; but once its context
	// has ended it writes to no connection any more, and the LeaveGroup fails unsent.
	own := &balancer{leader: m.leader, join: func() []byte { return m.subscription(ctx.Done()) }, synced: m.synced}
	opts := append(m.cfg.clientOptions(),
		kgo.WithContext(ctx),
		kgo.Balancers(m.balancers(own)...),
		kgo.WithHooks(hooks{m}),
	)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		stop(nil)
		return fmt.Errorf("client of group %s: %w", m.cfg.Group, err)
	}
	m.watch(ctx)
	stop(nil)
	client.Close()
	if err := context.Cause(ctx); errors.Is(err, ErrNotAdmitted) {
		m.withdraw()
		return err
	}
	return nil
}

// withdraw removes a member that was let into the group all the same: it would be assigned what it does not run.
func (m *Membership) withdraw() {
	id, _ := m.clientMember()
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.Heartbeat)
	defer cancel()
	if err := m.cfg.Coordinator.Leave(ctx, "the instance is not admitted", id); err != nil {
		m.cfg.Logger.Debug("not removed from the group; its session ends", "member", id, "error", err)
	}
}

// settle is how long after a plan a member begins no round of its own. A member whose sync comes after the
// beginning of the next round gets no plan, and the tasks that it was to take have nobody until then.
const settle = 100 * time.Millisecond

// ForceRound makes the group plan anew with a fresh Report of this member. It returns at once. While a
// round is under way, and for a moment after its end, it waits, so that rounds do not cut each other off; calls meanwhile
// are one. It is never lost: a join that follows has a report made after the call and a nonce that is new,
// since the coordinator starts no round for a follower whose bytes are the same as before.
func (m *Membership) ForceRound() {
	m.mu.Lock()
	m.mu.forced = true
	m.mu.Unlock()
	m.want() // if kgo would not heed it, the join to come, or synced, sees to it
}

// want has the watching goroutine begin the round that is wanted.
func (m *Membership) want() {
	select {
	case m.wish <- struct{}{}:
	default: // it will see to it anyway
	}
}

// settling is how long to wait before a round may be begun.
func (m *Membership) settling(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, settle-now.Sub(m.mu.planned))
}

// begin begins the round that is wanted, unless a join has asked for it meanwhile.
func (m *Membership) begin() {
	m.mu.Lock()
	forced := m.mu.forced
	m.mu.Unlock()
	if forced {
		m.rejoin()
	}
}

// Rejoin makes the member join a round that it has not heard of, and would hear of at its next heartbeat
// only: another instance has said that it waits for one. It returns at once; the coordinator is asked first,
// as the join of a leader would begin a round of its own.
func (m *Membership) Rejoin() {
	select {
	case m.hurry <- struct{}{}:
	default: // it will be asked anyway
	}
}

// rejoin makes kgo join, unless it is about to.
func (m *Membership) rejoin() {
	m.mu.Lock()
	client, inSession := m.mu.client, m.mu.inSession
	m.mu.Unlock()
	if inSession {
		client.ForceRebalance()
	}
}

// Leave ends Run and removes the member from the group, so that the others plan without it at once. It
// tries until the coordinator has confirmed it or ctx ends. It also serves after Run has ended.
func (m *Membership) Leave(ctx context.Context) error {
	m.mu.Lock()
	stop := m.mu.stop
	m.mu.Unlock()
	if stop == nil {
		return nil
	}
	// First stop: a member whose waiting join is answered with UNKNOWN_MEMBER_ID joins anew.
	stop(errLeaving)
	select {
	case <-m.done:
	case <-ctx.Done():
		return fmt.Errorf("leave group %s: %w", m.cfg.Group, ctx.Err())
	}
	id, _ := m.clientMember()
	if id == "" {
		return nil
	}
	for {
		err := m.cfg.Coordinator.Leave(ctx, "the instance leaves", id)
		if err == nil {
			return m.former.removed([]string{id})
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(m.cfg.Heartbeat / 4):
		}
	}
}

// clientMember returns member id and generation as kgo has them now: "" and -1 before the first join.
func (m *Membership) clientMember() (string, int32) {
	m.mu.Lock()
	client := m.mu.client
	m.mu.Unlock()
	if client == nil {
		return "", -1
	}
	return client.GroupMetadata()
}

// subscription makes the bytes of a join. kgo calls it on the goroutine that manages the group, for each
// join that it sends anew (not when it repeats a request whose connection broke).
func (m *Membership) subscription(ended <-chan struct{}) []byte {
	m.callbacks.Lock()
	defer m.callbacks.Unlock()
	id, _ := m.clientMember()
	m.mu.Lock()
	expelled := m.mu.clock.member && id != m.mu.memberID
	m.mu.Unlock()
	if expelled { // kgo rejoins without a word when a join is answered with UNKNOWN_MEMBER_ID
		m.lost(ErrExpelled, true)
	}
	if id != "" {
		if err := m.former.joined(id); err != nil {
			m.cfg.Logger.Warn("a restart will wait for the former member's session to end", "member", id, "error", err)
		}
	}
	m.mu.Lock()
	m.mu.clock.joins(time.Now())
	m.mu.inSession, m.mu.identified, m.mu.stale = false, id != "", false
	m.mu.missed, m.mu.missing = m.mu.missing, m.mu.identified
	m.mu.Unlock()
	m.yield(ended)
	m.mu.Lock()
	if m.mu.forced {
		m.mu.forced = false
		m.mu.nonce++
	}
	nonce := m.mu.nonce
	m.mu.Unlock()
	report := m.handler.Report()
	report.Nonce += nonce
	m.mu.Lock()
	m.claims(report)
	m.mu.Unlock()
	return encodeSubscription(m.topics, report)
}

// synced takes the assignment of a round that spoke our protocol.
func (m *Membership) synced(assigned []byte) error {
	plan, err := decodeAssignment(assigned)
	return m.admit(ProtocolName, err, func(id string, generation int32) {
		m.mu.Lock()
		m.mu.told = plan.Own
		m.mu.Unlock()
		m.cfg.Logger.Debug("plan received", "member", id, "generation", generation,
			"own", len(plan.Own), "take", len(plan.Take), "release", len(plan.Release), "learn", len(plan.Learn), "standby", len(plan.Standby))
		m.handler.Plan(id, generation, plan)
	})
}

// admit begins a lease by what a round of the protocol has assigned, unless that is an error. kgo has stored the round's
// member id and generation by then, and changes them only on the goroutine that this runs on.
func (m *Membership) admit(protocol string, err error, assigned func(id string, generation int32)) error {
	m.callbacks.Lock()
	defer m.callbacks.Unlock()
	id, generation := m.clientMember()
	if err != nil {
		// No new round: it would have the same leader. kgo joins again after a while and is given the same
		// plan, until another member leads.
		m.lost(fmt.Errorf("%w: %w", ErrUnreadablePlan, err), false)
		m.mu.Lock()
		admitted, stop := m.mu.admitted, m.mu.stop
		m.mu.Unlock()
		if errors.Is(err, ErrForeign) && !admitted {
			stop(fmt.Errorf("group %s: %w: %w: %s", m.cfg.Group, ErrNotAdmitted, err, foreignPlan))
		}
		return err
	}
	m.mu.Lock()
	m.mu.planned, m.mu.missing = time.Now(), false
	if m.mu.stale { // a round follows: lost has asked for it
		m.mu.inSession = true
		m.mu.Unlock()
		m.rejoin()
		return nil
	}
	m.mu.memberID, m.mu.generation, m.mu.admitted = id, generation, true
	m.mu.clock.admitted(time.Now())
	m.mu.inSession = true
	forced, former := m.mu.forced, m.mu.protocol
	m.mu.protocol = protocol
	m.mu.Unlock()
	if protocol != former {
		m.cfg.Logger.Info("what the group speaks", "protocol", protocol, "former", former, "generation", generation)
	}
	assigned(id, generation)
	if forced {
		m.want()
	}
	return nil
}

// foreignPlan says what an operator can do about a group that assigns partitions to a member of ours. Brokers do so in a group of
// KIP-848, which admits members of the classic protocol.
const foreignPlan = "something else than streamworker assigns this group's partitions, such as the brokers for consumers with " +
	"group.protocol=consumer (KIP-848): restart these with group.protocol=classic first, then upgrade; or stop them; or choose another group id"

// lost ends the lease, if there is one. m.callbacks must be held. With force, the next join starts a round:
// what this lease has sent and nobody has answered must not count under the next one, so that has to have
// another generation.
func (m *Membership) lost(err error, force bool) {
	m.mu.Lock()
	had, id, generation := m.mu.clock.member, m.mu.memberID, m.mu.generation
	m.mu.clock.member = false
	m.mu.losing = had
	if had {
		m.mu.losses++
	}
	if had && force {
		m.mu.forced, m.mu.stale = true, !m.mu.inSession
	}
	m.mu.Unlock()
	if had {
		m.cfg.Logger.Warn("lost the membership", "member", id, "generation", generation, "error", err)
		m.handler.Lost(err)
		m.mu.Lock()
		m.mu.losing = false
		m.mu.Unlock()
	}
}

// refused judges an error that has ended a session or an attempt to join. kgo tries again after a pause.
func (m *Membership) refused(err error) {
	m.mu.Lock()
	m.mu.inSession = false
	admitted, stop := m.mu.admitted, m.mu.stop
	m.mu.Unlock()
	if errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.FencedInstanceID) {
		m.callbacks.Lock()
		m.lost(fmt.Errorf("%w: %w", ErrExpelled, err), true)
		m.callbacks.Unlock()
	}
	if remedy := remedyFor(err); remedy != "" && !admitted {
		stop(fmt.Errorf("group %s: %w: %w: %s", m.cfg.Group, ErrNotAdmitted, err, remedy))
	}
}

// remedyFor says what an operator can do about an error that does not pass by itself; "" for others.
func remedyFor(err error) string {
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return "grant this client's principal the ACL operation READ on it, e.g. with kafka-acls"
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		return "its members speak another protocol, which kafka-consumer-groups --describe --state shows: to take over from plain consumers without a stop, " +
			"set rebalance_mode: upgrading and upgrade_from to that protocol, and replace one after the other; or stop all other consumers first; or choose another group id"
	case errors.Is(err, kerr.InvalidSessionTimeout):
		return "choose a session timeout within the broker's group.min.session.timeout.ms and group.max.session.timeout.ms"
	case errors.Is(err, kerr.GroupMaxSizeReached):
		return "run fewer instances, or raise the broker's group.max.size"
	case errors.Is(err, kerr.InvalidGroupID):
		return "choose another group id"
	default:
		return ""
	}
}
