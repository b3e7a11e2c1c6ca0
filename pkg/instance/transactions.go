package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// A transaction that is open on a changelog for longer than this, whose task nobody runs, has lost its writer.
const deadWriterAfter = 400 * time.Millisecond

// transactions gives the task manager what exactly once needs.
type transactions struct {
	id       string // this instance's transactional id
	app      string
	group    string
	implicit bool                 // the brokers run transaction version 2: no AddOffsetsToTxn is needed
	expired  func(time.Time) bool // whether the lease is over by this instance's own clock
	coord    *group.Coordinator
	adm      *kadm.Client
	client   func(opts ...kgo.Opt) (*kgo.Client, error)
}

var _ tasks.Transactions = (*transactions)(nil)

// transactionalID names the producer of an instance: the same after a restart, so that the restart ends
// what its former self has left open.
func transactionalID(app, instance string) string { return app + "-" + instance }

// newTransactions finds out what the brokers can do.
func (i *Instance) newTransactions(ctx context.Context, admin *kgo.Client) (*transactions, error) {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, admin)
	if err != nil {
		return nil, fmt.Errorf("asking for the brokers' features: %w", err)
	}
	x := &transactions{id: transactionalID(i.cfg.App, i.id), app: i.cfg.App, group: i.cfg.Kafka.Group, adm: kadm.NewClient(admin),
		client: func(opts ...kgo.Opt) (*kgo.Client, error) {
			// The timeout goes with the id, and the brokers may not allow the client's default.
			return kgo.NewClient(i.kafkaOptions("-fence", append(opts, kgo.TransactionTimeout(i.cfg.Kafka.TransactionTimeout))...)...)
		}}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" && f.MaxVersionLevel >= 2 {
			x.implicit = true
		}
	}
	opts := i.kafkaOptions("-transactions")
	if !x.implicit {
		v := kversion.Stable()
		v.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4)
		opts = append(opts, kgo.MaxVersions(v))
	}
	x.coord, err = group.NewCoordinator(i.cfg.Kafka.Group, opts...)
	return x, err
}

func (x *transactions) close() { x.coord.Close() }

// CommitOffsets makes the offsets part of the producer's transaction.
func (x *transactions) CommitOffsets(ctx context.Context, p *kgo.Client, lease handover.Lease, list []tasks.Offset) (handover.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	pid, epoch, err := p.ProducerID(ctx)
	if err != nil {
		return handover.Unknown, fmt.Errorf("the producer has failed: %w", err)
	}
	if !x.implicit {
		if err := x.addOffsets(ctx, p, pid, epoch); err != nil {
			return handover.Unknown, fmt.Errorf("adding the group to the transaction: %w", err)
		}
	}
	txn := group.Transaction{ID: x.id, ProducerID: pid, Epoch: epoch}
	return outcomeOf(len(list), x.coord.CommitInTransaction(ctx, txn, lease.Member, lease.Generation, commitsOf(list)))
}

func (x *transactions) addOffsets(ctx context.Context, p *kgo.Client, pid int64, epoch int16) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = x.id, pid, epoch, x.group
	for {
		resp, err := req.RequestWith(ctx, p)
		if err != nil {
			return err
		}
		err = kerr.ErrorForCode(resp.ErrorCode)
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// Fence ends what dead writers have left open on the partitions. Where the brokers or the rights do not allow
// to find them, it returns: the transactions end with their timeout.
func (x *transactions) Fence(ctx context.Context, parts []tasks.TopicPartition) error {
	if len(parts) == 0 {
		return nil // to kadm this would mean all partitions of the cluster
	}
	before, err := x.open(ctx, parts)
	if err != nil || len(before) == 0 {
		return nil //nolint:nilerr // waiting for the timeout is what is left to do
	}
	select {
	case <-time.After(deadWriterAfter):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := x.open(ctx, parts)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	var dead []int64
	for id, start := range after {
		if before[id] == start {
			dead = append(dead, id)
		}
	}
	for _, id := range x.writers(ctx, dead, parts) {
		if x.expired(time.Now()) {
			return errExpired // after a pause, the writer may be the one that has the task now
		}
		if err := x.fence(ctx, id); err != nil {
			return fmt.Errorf("fencing transactional id %s: %w", id, err)
		}
	}
	return nil
}

// writers are the transactional ids of other instances that have a transaction open on one of the partitions, of
// the producers given. The log of a partition may show a transaction as open that its coordinator has ended; the
// writer may be in the next one by then, and is left alone.
func (x *transactions) writers(ctx context.Context, producers []int64, parts []tasks.TopicPartition) (ids []string) {
	if len(producers) == 0 {
		return nil // to kadm this would mean all producers
	}
	listed, _ := x.adm.ListTransactions(ctx, producers, nil) // what is found is good, without the rest we wait
	for _, t := range listed {
		// This instance's own are ended when its producer starts.
		if t.TxnID != x.id && strings.HasPrefix(t.TxnID, transactionalID(x.app, "")) {
			ids = append(ids, t.TxnID)
		}
	}
	if len(ids) == 0 {
		return nil // likewise
	}
	described, _ := x.adm.DescribeTransactions(ctx, ids...)
	return slices.DeleteFunc(ids, func(id string) bool {
		d, ok := described[id]
		return !ok || d.Err != nil || d.State != "Ongoing" || !slices.Contains(producers, d.ProducerID) ||
			!slices.ContainsFunc(parts, func(p tasks.TopicPartition) bool { return d.Topics.Lookup(p.Topic, p.Partition) })
	})
}

// open are the producers that have a transaction open on one of the partitions, and where it begins.
func (x *transactions) open(ctx context.Context, parts []tasks.TopicPartition) (map[int64]int64, error) {
	set := kadm.TopicsSet{}
	for _, p := range parts {
		set.Add(p.Topic, p.Partition)
	}
	got, err := x.adm.DescribeProducers(ctx, set)
	if err != nil {
		return nil, err
	}
	open := map[int64]int64{}
	for _, t := range got {
		for _, p := range t.Partitions {
			if p.Err != nil {
				return nil, p.Err
			}
			for id, a := range p.ActiveProducers {
				if a.CurrentTxnStartOffset >= 0 {
					open[id] = a.CurrentTxnStartOffset
				}
			}
		}
	}
	return open, nil
}

// fence takes a transactional id over for a moment: its open transaction is aborted, and its former producer
// can write nothing more.
func (x *transactions) fence(ctx context.Context, id string) error {
	cl, err := x.client(kgo.TransactionalID(id))
	if err != nil {
		return err
	}
	defer cl.Close()
	_, _, err = cl.ProducerID(ctx)
	return err
}
