package command

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamworker/streamworker/pkg/query"
)

func newQuery(e *env) *cobra.Command {
	q := queryCommand{env: e}
	cmd := &cobra.Command{
		Use:   "query [STORE [KEY]]",
		Short: "Read stores: a key, a range of keys, or which stores there are",
		Long: `Reads what is committed in the stores of a running application. The instance that runs the key's task answers; it
is found by the statuses of the group. For that, instances serve an admin address (admin.listen); the one on this host is reached
without.

KEY is text in the store's format: a string, a number, JSON. Without KEY, keys are listed in the order of their bytes. Without STORE, the stores.
Keys of windows are shown as KEY@START/END, in ms since the epoch; KEY asks for all windows of a key, and --window-from and
--window-to for those that begin in a range of time: ms since the epoch, or 2024-01-31T12:00:00Z.

While a task is handed over, or an instance does not answer, the question is put again for --patience. With --stale, a learner or
standby answers as well; ROLE says so, and how far it is behind. A key's task is that of its partition by Kafka's default partitioner:
where the producer of the input uses another one, name it by --partition.

Ends with 17 if nothing is stored for the key.`,
		Example: `  streamworker query -c words.yaml
  streamworker query -c words.yaml counts be
  streamworker query -c words.yaml per-minute be --window-from 2024-01-31T12:00:00Z
  streamworker query --brokers kafka:9092 --app words counts --prefix b --limit 10 -o json`,
		Args: usageArgs(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				q.store = args[0]
			}
			if q.hasKey = len(args) > 1; q.hasKey {
				q.key = args[1]
			}
			if err := q.check(cmd); err != nil {
				return err
			}
			ctx, stop := e.interruptible(cmd.Context())
			defer stop()
			return q.run(ctx)
		},
	}
	q.place.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&q.from, "from", "", "first `key`")
	f.StringVar(&q.to, "to", "", "`key` behind the last one")
	f.StringVar(&q.prefix, "prefix", "", "`text` that keys begin with")
	f.StringVar(&q.windowFrom, "window-from", "", "`time` at which windows begin, or later")
	f.StringVar(&q.windowTo, "window-to", "", "`time` before which windows begin")
	f.IntVar(&q.limit, "limit", query.DefaultLimit, "most `keys` to show")
	f.Int32Var(&q.partition, "partition", -1, "look in this `partition` only")
	f.BoolVar(&q.stale, "stale", false, "take the answer of a learner or standby as well")
	f.DurationVar(&q.patience, "patience", 10*time.Second, "the `time` to wait for a task that is on the move")
	q.access.flags(cmd)
	q.format.flag(cmd, "text", "json")
	return cmd
}

type queryCommand struct {
	env    *env
	place  place
	access adminAccessFlags
	format output

	store, key           string
	hasKey               bool
	from, to, prefix     string
	windowFrom, windowTo string
	limit                int
	partition            int32
	stale                bool
	patience             time.Duration
}

func (q *queryCommand) check(cmd *cobra.Command) error {
	set := func(names ...string) string {
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				return name
			}
		}
		return ""
	}
	ranged := set("from", "to", "prefix")
	switch {
	case q.hasKey && ranged != "":
		return usageError{fmt.Errorf("--%s is for a range: leave KEY away", ranged)}
	case q.store == "" && (ranged != "" || set("window-from", "window-to", "limit", "partition") != ""):
		return usageError{errors.New("which store?")}
	case cmd.Flags().Changed("prefix") && (q.from != "" || q.to != ""):
		return usageError{errors.New("--prefix excludes --from and --to")}
	case q.limit < 1:
		return usageError{fmt.Errorf("--limit %d: want at least 1", q.limit)}
	case cmd.Flags().Changed("partition") && q.partition < 0:
		return usageError{fmt.Errorf("--partition %d: want 0 or more", q.partition)}
	}
	return nil
}

func (q *queryCommand) run(ctx context.Context) error {
	p, err := q.place.resolve(q.env, false)
	if err != nil {
		return err
	}
	peers, err := newPeers(ctx, q.env, p, q.access)
	if err != nil {
		return err
	}
	defer peers.close()
	told := ""
	client := &query.Client{Peers: peers.list, Token: peers.token, Patience: q.patience, Waiting: func(why error, left time.Duration) {
		if text := why.Error(); text != told {
			told = text
			fmt.Fprintf(q.env.errOut, "waiting, at most %s more: %s\n", left.Round(time.Second), text)
		}
	}}
	values := url.Values{}
	if q.stale {
		values.Set("stale", "true")
	}
	if q.partition >= 0 {
		values.Set("partition", strconv.Itoa(int(q.partition)))
	}
	for name, text := range map[string]string{"from": q.from, "to": q.to, "prefix": q.prefix, "window_from": q.windowFrom, "window_to": q.windowTo} {
		if text != "" {
			values.Set(name, text)
		}
	}
	var stores query.Stores
	switch {
	case q.store == "":
		if err := client.Ask(ctx, "", nil, &stores); err != nil {
			return err
		}
		return writeStores(q.env.out, stores, q.format == "json")
	case q.hasKey:
		values.Set("key", q.key)
		return q.ofKey(ctx, client, values)
	}
	return q.list(ctx, client, values)
}

// ofKey shows what is stored for a key: one row, or those of its windows.
func (q *queryCommand) ofKey(ctx context.Context, client *query.Client, values url.Values) error {
	values.Set("limit", strconv.Itoa(min(q.limit, query.MaxLimit)))
	var a struct {
		query.Answer
		Rows []query.RangeRow `json:"rows"` // nil: it has no windows
	}
	if err := client.Ask(ctx, q.store, values, &a); err != nil {
		return err
	}
	if a.Rows == nil {
		return writeAnswer(q.env.out, a.Answer, q.format == "json")
	}
	rows, more, err := q.partitionRows(ctx, client, values)
	if err != nil {
		return err
	}
	return writeRows(q.env.out, q.store, rows, more, q.format == "json")
}

// list shows the first keys of the range in all partitions, or in one.
func (q *queryCommand) list(ctx context.Context, client *query.Client, values url.Values) error {
	first, last := q.partition, q.partition
	if first < 0 {
		var stores query.Stores
		if err := client.Ask(ctx, "", nil, &stores); err != nil {
			return err
		}
		first, last = 0, 0
		for _, s := range stores.Stores {
			if s.Name == q.store {
				last = s.Partitions - 1
			}
		}
	}
	show := progress{w: q.env.errOut, terminal: q.env.terminal && q.format != "json"}
	rows := []foundRow{}
	more := false
	for p := first; p <= last; p++ {
		if show.terminal && last > first {
			show.replace(fmt.Sprintf("reading partition %d of %d", p+1, last+1))
		}
		values.Set("partition", strconv.Itoa(int(p)))
		found, rest, err := q.partitionRows(ctx, client, values)
		if err != nil {
			return err
		}
		rows, more = append(rows, found...), more || rest
		slices.SortStableFunc(rows, func(a, b foundRow) int { return cmp.Compare(string(a.Raw), string(b.Raw)) })
		if len(rows) > q.limit {
			rows, more = rows[:q.limit], true
		}
	}
	show.clear()
	return writeRows(q.env.out, q.store, rows, more, q.format == "json")
}

// partitionRows reads one partition up to the limit, page by page.
func (q *queryCommand) partitionRows(ctx context.Context, client *query.Client, values url.Values) (rows []foundRow, more bool, err error) {
	values.Del("after")
	for {
		values.Set("limit", strconv.Itoa(min(q.limit-len(rows), query.MaxLimit)))
		var page query.Range
		if err := client.Ask(ctx, q.store, values, &page); err != nil {
			return nil, false, err
		}
		for _, r := range page.Rows {
			rows = append(rows, foundRow{RangeRow: r, Origin: page.Origin})
		}
		if !page.More || len(rows) >= q.limit {
			return rows, page.More, nil
		}
		values.Set("after", base64.StdEncoding.EncodeToString(page.Next))
	}
}
