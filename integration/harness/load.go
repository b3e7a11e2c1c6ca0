package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Load produces input and keeps the exact table of how often it has sent each key. All but Sent is to be called by
// one goroutine.
type Load struct {
	Keys int

	t      testing.TB
	client *kgo.Client
	topic  string
	counts []int64   // by key
	of     [][]int32 // keys by partition
	sent   atomic.Int64
	failed atomic.Pointer[error]
	random *rand.Rand

	stop, stopped chan struct{}
}

const keyPrefix = "key-"

// Key is the name of the i-th key.
func Key(i int) string { return fmt.Sprintf("%s%07d", keyPrefix, i) }

// keyIndex is the inverse of Key.
func keyIndex(name []byte) (int, bool) {
	if len(name) <= len(keyPrefix) || string(name[:len(keyPrefix)]) != keyPrefix {
		return 0, false
	}
	i, err := strconv.Atoi(string(name[len(keyPrefix):]))
	return i, err == nil
}

// NewLoad makes a load of the given number of keys for the application's input.
func NewLoad(t testing.TB, a *App, keys int) *Load {
	t.Helper()
	l := &Load{
		Keys: keys, t: t, topic: a.Input(), counts: make([]int64, keys), of: make([][]int32, a.Partitions), random: rand.New(rand.NewPCG(1, 2)),
		// A broker that restarts must not lose records: the client retries without end by default.
		client: a.Kafka.Client(t, kgo.ProducerLinger(2*time.Millisecond), kgo.MaxBufferedRecords(1<<20)),
	}
	for i, p := range partitionsOf(keys, a.Partitions) {
		l.of[p] = append(l.of[p], int32(i))
	}
	return l
}

// partitionsOf tells the partition of each key, as every Kafka client chooses it.
func partitionsOf(keys int, partitions int32) []int32 {
	chooser := kgo.StickyKeyPartitioner(nil).ForTopic("")
	of := make([]int32, keys)
	for i := range of {
		of[i] = int32(chooser.Partition(&kgo.Record{Key: []byte(Key(i))}, int(partitions)))
	}
	return of
}

// All sends every key once, as fast as it goes.
func (l *Load) All() {
	l.t.Helper()
	for i := range l.counts {
		l.send(i)
	}
	l.flush()
}

// Start sends random keys at a rate per second until Stop, only to the given partitions, or to all if none is given.
func (l *Load) Start(rate int, partitions ...int32) {
	if len(partitions) == 0 {
		for p := range l.of {
			partitions = append(partitions, int32(p))
		}
	}
	l.start(rate, func() {
		keys := l.of[partitions[l.random.IntN(len(partitions))]]
		l.send(int(keys[l.random.IntN(len(keys))]))
	})
}

// StartLines sends lines of random keys at a rate of lines per second until Stop, for an application that counts the
// words of its input's values.
func (l *Load) StartLines(rate, words int) {
	line := make([]int, words)
	l.start(rate, func() {
		for i := range line {
			line[i] = l.random.IntN(l.Keys)
		}
		l.sendLine(line)
	})
}

// start calls one at a rate per second until Stop.
func (l *Load) start(rate int, one func()) {
	l.stop, l.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(l.stopped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		start, done := time.Now(), 0
		for {
			select {
			case <-l.stop:
				return
			case <-tick.C:
			}
			for due := int(time.Since(start).Seconds() * float64(rate)); done < due; done++ {
				one()
			}
		}
	}()
}

// Stop ends what Start began and waits until all records are acknowledged.
func (l *Load) Stop() {
	l.t.Helper()
	close(l.stop)
	<-l.stopped
	l.flush()
}

// Table is how often each key was sent, by the key's name. The load must be at rest.
func (l *Load) Table() map[string]int64 {
	table := make(map[string]int64, len(l.counts))
	for i, n := range l.counts {
		if n > 0 {
			table[Key(i)] = n
		}
	}
	return table
}

// Sent is the number of keys sent so far.
func (l *Load) Sent() int64 { return l.sent.Load() }

func (l *Load) send(key int) {
	l.produce(&kgo.Record{Topic: l.topic, Key: []byte(Key(key)), Value: []byte("x")})
	l.counts[key]++
	l.sent.Add(1)
}

func (l *Load) sendLine(keys []int) {
	var line []byte
	for _, key := range keys {
		line = append(append(line, Key(key)...), ' ')
		l.counts[key]++
	}
	l.produce(&kgo.Record{Topic: l.topic, Value: line})
	l.sent.Add(int64(len(keys)))
}

func (l *Load) produce(r *kgo.Record) {
	l.client.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
		if err != nil {
			l.failed.Store(&err)
		}
	})
}

func (l *Load) flush() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := l.client.Flush(ctx); err != nil {
		l.t.Fatalf("the load was not acknowledged: %v", err)
	}
	if err := l.failed.Load(); err != nil {
		l.t.Fatalf("a record of the load failed, so its table is not exact: %v", *err)
	}
}
