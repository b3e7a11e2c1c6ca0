package tasks

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// ledger is a coordinator's memory of committed offsets.
type ledger struct {
	mu    sync.Mutex
	table map[TopicPartition]Offset
	log   []commitCall
	// answer, if set, decides on a commit; it may block. It says whether the commit is written.
	answer func(commitCall) (o handover.Outcome, write bool)
	refuse struct { // of one partition, whatever else is in the commit
		tp  TopicPartition
		err error
	}
	// fetch, if set, is called before a fetch is answered; it may block.
	fetch func(parts []TopicPartition) error
}

// commitCall is one request.
type commitCall struct {
	lease   handover.Lease
	offsets []Offset
}

// token is the release that the commit is for; nil for an ordinary one.
func (c commitCall) token() *handover.Token {
	m, _ := handover.ParseMetadata(c.offsets[0].Metadata)
	return m.Token
}

func (l *ledger) Commit(_ context.Context, lease handover.Lease, offsets []Offset) (handover.Outcome, error) {
	c := commitCall{lease, offsets}
	l.mu.Lock()
	l.log = append(l.log, c)
	answer := l.answer
	l.mu.Unlock()
	o, write := handover.Acknowledged, true
	if answer != nil {
		o, write = answer(c)
	}
	refused := map[TopicPartition]error{}
	if write {
		l.mu.Lock()
		for _, off := range offsets {
			if l.refuse.err != nil && off.TopicPartition == l.refuse.tp {
				refused[off.TopicPartition] = l.refuse.err
			} else {
				l.table[off.TopicPartition] = off
			}
		}
		l.mu.Unlock()
	}
	if len(refused) > 0 {
		if len(refused) == len(offsets) {
			o = handover.Declined
		}
		return o, &RefusedError{Partitions: refused}
	}
	if o != handover.Acknowledged {
		return o, fmt.Errorf("the test does not acknowledge it")
	}
	return o, nil
}

func (l *ledger) Fetch(_ context.Context, parts []TopicPartition) (map[TopicPartition]Offset, error) {
	l.mu.Lock()
	fetch := l.fetch
	l.mu.Unlock()
	if fetch != nil {
		if err := fetch(parts); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[TopicPartition]Offset{}
	for _, tp := range parts {
		if o, ok := l.table[tp]; ok {
			out[tp] = o
		} else {
			out[tp] = Offset{TopicPartition: tp, Offset: -1}
		}
	}
	return out, nil
}

// exactlyOnce makes a rig whose tasks write in transactions. Offsets count when they are added to the transaction.
func exactlyOnce(c *Config) { c.Transactions = &ledgerTransactions{ledger: c.Offsets.(*ledger)} }

type ledgerTransactions struct {
	ledger *ledger
	fenced atomic.Int64
}

func (l *ledgerTransactions) CommitOffsets(ctx context.Context, _ *kgo.Client, lease handover.Lease, offsets []Offset) (handover.Outcome, error) {
	return l.ledger.Commit(ctx, lease, offsets)
}

func (l *ledgerTransactions) Fence(context.Context) error {
	l.fenced.Add(1)
	return nil
}

// decide sets how commits are answered from now on.
func (l *ledger) decide(f func(commitCall) (handover.Outcome, bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = f
}

// refusePartition makes commits fail for one partition; nil ends that.
func (l *ledger) refusePartition(tp TopicPartition, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse.tp, l.refuse.err = tp, err
}

func (l *ledger) beforeFetch(f func([]TopicPartition) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetch = f
}

func (l *ledger) offset(topic string, partition int32) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, ok := l.table[TopicPartition{topic, partition}]; ok {
		return o.Offset
	}
	return -1
}

// write commits as another member would.
func (l *ledger) write(topic string, partition int32, offset int64, meta handover.Metadata) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tp := TopicPartition{topic, partition}
	l.table[tp] = Offset{TopicPartition: tp, Offset: offset, Metadata: meta.String()}
}

// commits are the requests so far for which the condition holds.
func (l *ledger) commits(cond func(commitCall) bool) (out []commitCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.log {
		if cond(c) {
			out = append(out, c)
		}
	}
	return out
}

func (l *ledger) releases() []commitCall {
	return l.commits(func(c commitCall) bool { return c.token() != nil })
}

// scriptedGroup is a membership that notes what is asked of it.
type scriptedGroup struct {
	rounds  atomic.Int64
	expired atomic.Bool
}

func (g *scriptedGroup) ForceRound()            { g.rounds.Add(1) }
func (g *scriptedGroup) Expired(time.Time) bool { return g.expired.Load() }

// countedLogs asks Kafka, unless the test says otherwise.
type countedLogs struct {
	adm *kadm.Client

	mu     sync.Mutex
	before func(what string, parts []TopicPartition) error // may block
	purged map[TopicPartition]int64
}

func (l *countedLogs) ask(what string, parts []TopicPartition) error {
	l.mu.Lock()
	before := l.before
	l.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(what, parts)
}

func (l *countedLogs) intercept(f func(what string, parts []TopicPartition) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = f
}

func (l *countedLogs) list(ctx context.Context, parts []TopicPartition, f func(context.Context, ...string) (kadm.ListedOffsets, error)) (map[TopicPartition]int64, error) {
	out := map[TopicPartition]int64{}
	for _, tp := range parts {
		got, err := f(ctx, tp.Topic)
		if err != nil {
			return nil, err
		}
		if o, ok := got.Lookup(tp.Topic, tp.Partition); ok && o.Err == nil {
			out[tp] = o.Offset
		}
	}
	return out, nil
}

func (l *countedLogs) Ends(ctx context.Context, parts []TopicPartition) (map[TopicPartition]int64, error) {
	if err := l.ask("ends", parts); err != nil {
		return nil, err
	}
	return l.list(ctx, parts, l.adm.ListEndOffsets)
}

func (l *countedLogs) Starts(ctx context.Context, parts []TopicPartition) (map[TopicPartition]int64, error) {
	if err := l.ask("starts", parts); err != nil {
		return nil, err
	}
	return l.list(ctx, parts, l.adm.ListStartOffsets)
}

func (l *countedLogs) Purge(_ context.Context, before map[TopicPartition]int64) error {
	if err := l.ask("purge", nil); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.purged == nil {
		l.purged = map[TopicPartition]int64{}
	}
	maps.Copy(l.purged, before)
	return nil
}

// gate is a way to Kafka that can be shut: what is written waits until it is open again.
type gate struct {
	mu sync.Mutex
	ch chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{ch: make(chan struct{})}
	close(g.ch)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.ch:
		g.ch = make(chan struct{})
	default:
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.ch:
	default:
		close(g.ch)
	}
}

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: conn, gate: g, closed: make(chan struct{})}, nil
}

type gatedConn struct {
	net.Conn
	gate   *gate
	once   sync.Once
	closed chan struct{}
}

func (c *gatedConn) Write(b []byte) (int, error) {
	c.gate.mu.Lock()
	ch := c.gate.ch
	c.gate.mu.Unlock()
	select {
	case <-ch:
		return c.Conn.Write(b)
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
