package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/streamworker/streamworker/pkg/group"
	"github.com/streamworker/streamworker/pkg/tasks"
	"github.com/streamworker/streamworker/pkg/tasks/handover"
)

// transactions gives the task manager what exactly once needs.
type transactions struct {
	id       string // this instance's transactional id
	group    string
	implicit bool // the brokers run transaction version 2: no AddOffsetsToTxn is needed
	coord    *group.Coordinator
	fencing  *fencing
}

var _ tasks.Transactions = (*transactions)(nil)

// transactionalID names the producer of an instance: the same after a restart, so that the restart ends
// what its former self has left open.
func transactionalID(app, instance string) string { return app + "-" + instance }

// newTransactions finds out what the brokers can do.
func (i *Instance) newTransactions(ctx context.Context, admin *kgo.Client, lay *layout) (*transactions, error) {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, admin)
	if err != nil {
		return nil, fmt.Errorf("asking for the brokers' features: %w", err)
	}
	x := &transactions{id: transactionalID(i.cfg.App, i.id), group: i.cfg.Kafka.Group, fencing: i.newFencing(admin, lay)}
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

// Fence ends what instances that are gone have left open.
func (x *transactions) Fence(ctx context.Context) error { return x.fencing.run(ctx) }
