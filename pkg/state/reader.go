package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ReaderConfig bounds a Reader.
type ReaderConfig struct {
	// BytesPerSecond is the share of bandwidth for partitions that are behind; 0: no bound. Partitions at
	// their end are read regardless, as a task that is handed over waits for them.
	BytesPerSecond int64
	MaxWait        time.Duration // how long a broker may hold an answer back when nothing is new; default 250 ms
	Logger         *slog.Logger  // default: none
}

// Reader tails changelog partitions with Fetch requests of its own, one at a time to each broker. It
// reads what is committed.
//
// Locking: mu guards the tails and is held while a batch is delivered.
type Reader struct {
	cl           *kgo.Client
	cfg          ReaderConfig
	log          *slog.Logger
	decompressor kgo.Decompressor
	wake         chan struct{}

	mu       sync.Mutex
	tails    map[topicPartition]*tail
	throttle throttle
}

type topicPartition struct {
	topic     string
	partition int32
}

// NewReader returns a reader on a client that consumes nothing and belongs to no group. Run has to be
// called for it to read.
func NewReader(cl *kgo.Client, cfg ReaderConfig) *Reader {
	setDefault(&cfg.MaxWait, 250*time.Millisecond)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Reader{
		cl: cl, cfg: cfg, log: cfg.Logger.With("component", "changelog reader"),
		decompressor: kgo.DefaultDecompressor(),
		wake:         make(chan struct{}, 1),
		tails:        make(map[topicPartition]*tail),
		throttle:     throttle{rate: float64(max(0, cfg.BytesPerSecond))},
	}
}

// Add reads a partition from an offset on; 0 means from the start of the log, wherever that is. deliver
// is called on the reader's goroutine, at once for the first time when the log's end is known, then
// whenever there is something new, and now and then when there is not. It must not block, nor call Add
// or Remove. A partition that is being read starts anew.
func (r *Reader) Add(topic string, partition int32, from int64, deliver func(Batch)) {
	r.mu.Lock()
	r.tails[topicPartition{topic, partition}] = &tail{
		topic: topic, partition: partition, deliver: deliver, position: from, leader: leaderUnknown, heardEnd: -1,
	}
	r.mu.Unlock()
	r.poke()
}

// Remove stops reading a partition. After it returns, deliver is not called again.
func (r *Reader) Remove(topic string, partition int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tails, topicPartition{topic, partition})
}

// Urgent says whether the stream waits for a partition: then it is read first, and regardless of the share
// of bandwidth. It is not until this is called.
func (r *Reader) Urgent(topic string, partition int32, urgent bool) {
	r.mu.Lock()
	if t := r.tails[topicPartition{topic, partition}]; t != nil {
		t.urgent = urgent
	}
	r.mu.Unlock()
	r.poke()
}

func (r *Reader) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// loop is what Run keeps while it runs.
type loop struct {
	*Reader
	ctx     context.Context
	wg      sync.WaitGroup
	fetched chan *fetch
	leaders chan *leaders

	busy    map[int32]bool      // brokers with a fetch under way
	grace   map[int32]time.Time // brokers that wait until then for batches to be done
	asking  bool                // for leaders
	askFrom time.Time           // not before
}

// Run reads until ctx ends; it returns nil then.
func (r *Reader) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	l := &loop{
		Reader: r, ctx: ctx, fetched: make(chan *fetch), leaders: make(chan *leaders),
		busy: make(map[int32]bool), grace: make(map[int32]time.Time),
	}
	defer l.wg.Wait()
	defer cancel()
	for {
		timer := time.NewTimer(l.schedule(time.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-r.wake:
		case f := <-l.fetched:
			l.answered(f, time.Now())
		case a := <-l.leaders:
			l.located(a, time.Now())
		}
		timer.Stop()
	}
}

const (
	longSleep = time.Minute
	// hurry is the wait of a fetch that leaves out partitions whose batch is not done yet: they join the
	// next one.
	hurry = 5 * time.Millisecond
	// grace is how long a fetch is put off for such partitions. A batch from the log's end is small and
	// done sooner.
	grace = 3 * time.Millisecond
	// askAgain is the least time between two questions for leaders.
	askAgain = 50 * time.Millisecond
)

// schedule starts what can be started and returns the time until something is due that nothing will
// wake the loop for.
func (l *loop) schedule(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	sleep := longSleep
	later := func(d time.Duration) { sleep = min(sleep, max(d, time.Millisecond)) }

	debt := l.throttle.wait(now)
	var unknown []string
	ready := make(map[int32][]*tail)
	waiting := make(map[int32]int) // partitions that will be ready when their batch is done, by broker
	for _, t := range l.tails {
		switch {
		case t.stopped || t.fetching:
		case t.pending.Load():
			waiting[t.leader]++
		case now.Before(t.retryAt):
			later(t.retryAt.Sub(now))
		case t.leader == leaderUnknown:
			unknown = append(unknown, t.topic)
		case debt > 0 && !t.caughtUp && !t.urgent:
			later(debt)
		default:
			ready[t.leader] = append(ready[t.leader], t)
		}
	}
	for broker, tails := range ready {
		if l.busy[broker] {
			continue
		}
		wait := l.cfg.MaxWait
		if waiting[broker] > 0 {
			wait = min(wait, hurry)
			if until := l.grace[broker]; now.Before(until) {
				later(until.Sub(now))
				continue
			}
		}
		l.fetch(broker, tails, wait)
	}
	if len(unknown) > 0 && !l.asking {
		if now.Before(l.askFrom) {
			later(l.askFrom.Sub(now))
		} else {
			l.askFrom = now.Add(askAgain)
			l.ask(unknown)
		}
	}
	return sleep
}

// fetch asks a broker for what is new in these partitions, tails that are at their end first.
func (l *loop) fetch(broker int32, tails []*tail, wait time.Duration) {
	if i := slices.IndexFunc(tails, func(t *tail) bool { return t.alone }); i >= 0 {
		tails = tails[i : i+1]
		wait = 0
	}
	slices.SortFunc(tails, func(a, b *tail) int {
		if first := a.caughtUp || a.urgent; first != (b.caughtUp || b.urgent) {
			if first {
				return -1
			}
			return 1
		}
		return a.heardAt.Compare(b.heardAt) // those that were served least lately
	})
	bytes := int32(fetchBytes)
	if l.cfg.BytesPerSecond > 0 {
		bytes = int32(min(fetchBytes, max(64<<10, l.cfg.BytesPerSecond)))
	}
	f := newFetch(broker, tails, wait, bytes)
	for _, t := range tails {
		t.fetching = true
	}
	l.busy[broker] = true
	l.wg.Go(func() {
		f.run(l.ctx, l.cl, l.decompressor)
		select {
		case l.fetched <- f:
		case <-l.ctx.Done():
		}
	})
}

func (l *loop) ask(topics []string) {
	slices.Sort(topics)
	topics = slices.Compact(topics)
	l.asking = true
	l.wg.Go(func() {
		a := askLeaders(l.ctx, l.cl, topics)
		select {
		case l.leaders <- a:
		case <-l.ctx.Done():
		}
	})
}

// answered takes the outcome of a fetch.
func (l *loop) answered(f *fetch, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy[f.broker] = false
	l.throttle.spend(f.size, now)
	patient := true
	for _, a := range f.asked {
		t := a.tail
		t.fetching = false
		if l.tails[topicPartition{a.topic, a.part}] != t {
			continue // removed meanwhile
		}
		switch {
		case f.err != nil:
			t.leader = leaderUnknown
			t.failed(now)
			l.warn(t, now, f.err)
		case a.fetched == nil:
			t.failed(now) // throttled by the broker, say
		case a.fetched.err != nil:
			l.refused(t, a.fetched, now)
		default:
			t.take(a.fetched, now, l.poke)
			patient = patient && t.caughtUp
		}
	}
	if patient {
		l.grace[f.broker] = now.Add(grace)
	}
}

// refused takes a broker's error for one partition.
func (l *loop) refused(t *tail, f *fetched, now time.Time) {
	switch err := f.err; {
	case errors.Is(err, kerr.OffsetOutOfRange) && t.position == 0:
		t.position = f.start
	case errors.Is(err, kerr.OffsetOutOfRange):
		t.stop(fmt.Errorf("%w: changelog %s partition %d at %d: the log holds %d to %d", ErrOutOfRange, t.topic, t.partition, t.position, f.start, f.end), f.start, f.end)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		t.stop(fmt.Errorf("reading changelog %s partition %d: grant Read on the topic: %w", t.topic, t.partition, err), 0, 0)
	default: // the leader has moved, or the broker cannot serve it now
		t.leader = leaderUnknown
		t.failed(now)
		l.warn(t, now, err)
	}
}

// located takes the answer to where the leaders are.
func (l *loop) located(a *leaders, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking = false
	for _, t := range l.tails {
		if t.leader != leaderUnknown || t.stopped {
			continue
		}
		if a.err != nil {
			t.failed(now)
			l.warn(t, now, a.err)
			continue
		}
		if topic, ok := a.topics[t.topic]; ok { // else it was added after the question
			l.locate(t, topic, now)
		}
	}
}

func (l *loop) locate(t *tail, topic *kmsg.MetadataResponseTopic, now time.Time) {
	err := kerr.ErrorForCode(topic.ErrorCode)
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		t.stop(fmt.Errorf("reading changelog %s partition %d: grant Describe and Read on the topic: %w", t.topic, t.partition, err), 0, 0)
		return
	case err == nil && t.topicID != [16]byte{} && t.topicID != topic.TopicID:
		t.stop(fmt.Errorf("%w: changelog %s", ErrTopicChanged, t.topic), 0, 0)
		return
	case err == nil:
		t.topicID = topic.TopicID
		err = kerr.UnknownTopicOrPartition
		for i := range topic.Partitions {
			if p := &topic.Partitions[i]; p.Partition == t.partition {
				t.leader = p.Leader
				err = kerr.ErrorForCode(p.ErrorCode) // no leader comes with an error
			}
		}
	}
	if t.leader == leaderUnknown {
		t.failed(now)
		if err == nil {
			err = kerr.LeaderNotAvailable
		}
		l.warn(t, now, err)
	}
}

func (l *loop) warn(t *tail, now time.Time, err error) {
	if t.warn(now) {
		l.log.Warn("the changelog cannot be read; it is tried again", "topic", t.topic, "partition", t.partition, "offset", t.position, "error", err)
	}
}
