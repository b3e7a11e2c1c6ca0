package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// producerEpoch is what the brokers know a producer by at a time.
type producerEpoch struct {
	id    int64
	epoch int16
}

// epochOf asks the client for its present epoch.
func epochOf(ctx context.Context, p *kgo.Client) (e producerEpoch, err error) {
	e.id, e.epoch, err = p.ProducerID(ctx)
	if errors.Is(err, kerr.TransactionalIDAuthorizationFailed) {
		err = fmt.Errorf("not authorized to WRITE transactional id %v (%w): grant this client's principal the ACL operation WRITE on it, e.g. with kafka-acls",
			p.OptValue(kgo.TransactionalID), err)
	}
	return e, err
}

// begin begins a transaction, and before it what is needed to make the brokers end what an earlier producer
// under this transactional id has left open.
func begin(ctx context.Context, p *kgo.Client) (producerEpoch, error) {
	if _, err := epochOf(ctx, p); err != nil {
		return producerEpoch{}, err
	}
	if err := p.BeginTransaction(); err != nil {
		return producerEpoch{}, err
	}
	return epochOf(ctx, p)
}

// closeProducer drops the present producer with all that it has not sent.
func (m *Manager) closeProducer() {
	x := m.txn
	x.number++
	x.phase, x.starting, x.waiting, x.cuts, x.again = txnClosed, false, 0, nil, false
	if err := m.renewProducer(); err != nil {
		m.log.Error("no new producer", "error", err)
	}
}

// mayStart says whether the transactional id is this process's for sure. One that has lost the group, or is to
// give way, would fence its successor.
func (m *Manager) mayStart() bool {
	_, leased := m.machine.Lease()
	return leased && !m.machine.Superseded()
}

// startProducer begins the first transaction of the present producer, after a pause if there were failures.
func (m *Manager) startProducer(failures int) {
	if failures == 0 {
		m.initProducer()
		return
	}
	x, number := m.txn, m.txn.number
	time.AfterFunc(min(backoff(failures), openRetryMost), func() {
		m.box.post(func() {
			if number == x.number && x.phase == txnClosed && !x.pending && !x.starting { // else a plan has made the attempt meanwhile
				m.initProducer()
			}
		})
	})
}

// initProducer makes the broker end what an earlier producer under this transactional id has left open, and
// begins the first transaction.
func (m *Manager) initProducer() {
	x := m.txn
	x.starting, x.pending = true, false
	number, p := x.number, m.env.producer
	m.async(func(ctx context.Context) {
		epoch, err := begin(ctx, p)
		m.box.post(func() {
			if number != x.number || ctx.Err() != nil {
				return
			}
			x.starting = false
			if err == nil {
				x.epoch, x.pending, x.broken = epoch, false, nil
				m.openTransaction()
				m.takeUp(time.Now())
				return
			}
			x.failures++
			x.broken = fmt.Errorf("the transactional producer does not start: %w", err)
			m.log.Warn("the transactional producer does not start; trying again", "failures", x.failures, "error", err)
			m.closeProducer()
			if x.pending = !m.mayStart(); !x.pending {
				m.startProducer(x.failures)
			}
		})
	})
}

// isFenced says whether an error comes from another producer under the same transactional id.
func isFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
}

// fenceUnstable ends the transaction that keeps a task's committed offset from being known: its writer died
// before it could end it.
func (m *Manager) fenceUnstable(l lookup) {
	if m.cfg.Transactions == nil {
		return
	}
	m.async(func(ctx context.Context) {
		if err := m.cfg.Transactions.Fence(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("cannot end a transaction that a former owner left open; it ends with its timeout", "task", l.task.String(), "error", err)
		}
	})
}
