package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
)

// fencingStep bounds each request, as a task waits to be opened meanwhile: a broker may be gone as well, and what the
// others say has to do.
const fencingStep = 1500 * time.Millisecond

const ongoing = "Ongoing" // state of a transaction

// fencing ends the transactions that instances which are gone have left open. Until they are ended, readers of
// committed data see nothing that comes behind them, in any topic that the dead instance wrote to.
type fencing struct {
	app, own string          // the application's name and this instance's id
	group    string          // consumer group
	shared   bool            // with plain consumers, whose transactional ids may look like those of instances: nothing is ended
	writes   map[string]bool // topics that the application's transactions may touch
	adm      *kadm.Client
	client   func(opts ...kgo.Opt) (*kgo.Client, error)
	expired  func(time.Time) bool // whether the lease is over by this instance's own clock
	log      *slog.Logger

	mu      sync.Mutex
	started time.Time // of the last search
	err     error     // how it ended
	told    bool      // that one is not possible
}

// offsetsTopic is where Kafka keeps committed offsets.
const offsetsTopic = "__consumer_offsets"

func (i *Instance) newFencing(admin *kgo.Client, lay *layout) *fencing {
	f := &fencing{
		app: i.cfg.App, own: i.id, group: i.cfg.Kafka.Group, shared: i.cfg.RebalanceMode == config.Upgrading, writes: map[string]bool{offsetsTopic: true}, adm: kadm.NewClient(admin),
		client: func(opts ...kgo.Opt) (*kgo.Client, error) {
			// The timeout goes with the id, and the brokers may not allow the client's default.
			return kgo.NewClient(i.kafkaOptions("-fence", append(opts, kgo.TransactionTimeout(i.cfg.Kafka.TransactionTimeout))...)...)
		},
		log: i.log.With("component", "tasks"),
	}
	for _, topic := range lay.writes {
		f.writes[topic] = true
	}
	return f
}

// run looks for such transactions and ends them. Of several calls at one time one works for all. Where the brokers or
// the rights do not allow it, run says so once and returns: the transactions end with their timeout.
func (f *fencing) run(ctx context.Context) error {
	if f.shared {
		return nil
	}
	called := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.started.After(called) {
		return f.err
	}
	f.started = time.Now()
	gone, err := f.gone(ctx)
	if err != nil {
		f.cannot(err)
	}
	f.err = nil
	for _, id := range gone {
		if f.expired(time.Now()) {
			f.err = errExpired // after a pause, the instance may be back and at work
			break
		}
		switch err := f.fence(ctx, id); {
		case err == nil:
			f.log.Info("ended the transaction of an instance that is gone", "transactional_id", id)
		case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
			f.cannot(err)
		default:
			f.err = errors.Join(f.err, fmt.Errorf("fencing transactional id %s: %w", id, err))
		}
	}
	return f.err
}

func (f *fencing) cannot(err error) {
	if f.told {
		return
	}
	f.told = true
	f.log.Warn("transactions that instances which are gone have left open cannot be looked for and ended: readers wait for kafka.transaction_timeout", "error", err)
}

// gone are the transactional ids of instances that are not in the group and have a transaction open. Transactions
// that touch topics which are not this application's belong to another one, whose name begins with this one's.
func (f *fencing) gone(ctx context.Context) ([]string, error) {
	listed, err := step(ctx, func(ctx context.Context) (kadm.ListedTransactions, error) {
		return f.adm.ListTransactions(ctx, nil, []string{ongoing})
	})
	var ids []string
	for id, t := range listed {
		if instance, ok := strings.CutPrefix(id, transactionalID(f.app, "")); ok && instance != f.own && t.State == ongoing {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, err
	}
	members, err := f.members(ctx)
	if err != nil {
		return nil, err
	}
	if !inGroup(members, f.own) {
		return nil, nil // this instance does not see the group that it is in: others may be missing as well
	}
	var gone []string
	for _, id := range ids {
		if !inGroup(members, strings.TrimPrefix(id, transactionalID(f.app, ""))) {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	described, err := step(ctx, func(ctx context.Context) (kadm.DescribedTransactions, error) {
		return f.adm.DescribeTransactions(ctx, gone...)
	})
	var ours []string
	for id, t := range described {
		ok := t.Err == nil && t.State == ongoing && len(t.Topics) > 0 // none: this client may not see them
		for topic := range t.Topics {
			ok = ok && f.writes[topic]
		}
		if ok {
			ours = append(ours, id)
		}
	}
	return ours, err
}

// members are the client ids in the group.
func (f *fencing) members(ctx context.Context) ([]string, error) {
	groups, err := step(ctx, func(ctx context.Context) (kadm.DescribedGroups, error) { return f.adm.DescribeGroups(ctx, f.group) })
	if err != nil {
		return nil, err
	}
	g := groups[f.group]
	if g.Err != nil {
		return nil, g.Err
	}
	var ids []string
	for _, m := range g.Members {
		ids = append(ids, m.ClientID)
	}
	return ids, nil
}

// inGroup says whether an instance is in the group. Its client id ends with its instance id; in doubt it is.
func inGroup(clientIDs []string, instance string) bool {
	for _, id := range clientIDs {
		if strings.HasSuffix(id, "-"+instance) {
			return true
		}
	}
	return false
}

// fence takes a transactional id over for a moment: its open transaction is aborted, and its former producer
// can write nothing more.
func (f *fencing) fence(ctx context.Context, id string) error {
	cl, err := f.client(kgo.TransactionalID(id))
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = step(ctx, func(ctx context.Context) (int64, error) {
		id, _, err := cl.ProducerID(ctx)
		return id, err
	})
	return err
}

// step makes one request within its bound. What it got until then counts.
func step[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, fencingStep)
	defer cancel()
	return request(ctx)
}
