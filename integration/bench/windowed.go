package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// Times of the events: in order over a span, but for one in lateOneIn, which is late by less than the windows' grace. Both
// sides have the size and the grace in their jobs.
const (
	eventSpan  = 10 * time.Minute
	windowSize = time.Minute
	grace      = time.Minute
	lateOneIn  = 16
)

// timesBegin is that of the events, a window's start. It is the same in all runs, and not long ago: a broker deletes records
// that are old.
func (b *bench) timesBegin() time.Time { return b.report.Began.Truncate(windowSize).Add(-eventSpan) }

// times are the timestamps of a load, the same each time.
func (b *bench) times() func() time.Time {
	random, i := rand.New(rand.NewPCG(4, 5)), 0
	begin, step := b.timesBegin(), float64(eventSpan)/float64(b.records)
	return func() time.Time {
		at := begin.Add(time.Duration(float64(i) * step))
		i++
		if random.IntN(lateOneIn) == 0 {
			at = at.Add(-time.Duration(random.Int64N(int64(grace))))
		}
		return at
	}
}

// windowKeys are keys of windows, as both sides write them: the key, then the window's start in 8 bytes. Late events may
// be in the window before the first one.
func (b *bench) windowKeys(keys int) keySpace {
	first := b.timesBegin().Add(-windowSize).UnixMilli()
	return keySpace{
		size: keys * int(eventSpan/windowSize+1),
		index: func(name []byte) (int, bool) {
			const start = 8
			if len(name) < start {
				return 0, false
			}
			split := len(name) - start
			key, ok := keyIndex(name[:split])
			since := int64(binary.BigEndian.Uint64(name[split:])) - first
			if !ok || key >= keys || since < 0 || since%windowSize.Milliseconds() != 0 {
				return 0, false
			}
			return int(since/windowSize.Milliseconds())*keys + key, true
		},
		name: func(i int) []byte {
			return binary.BigEndian.AppendUint64(keyName(i%keys), uint64(first+int64(i/keys)*windowSize.Milliseconds()))
		},
	}
}

// windowCounts is how often each key of a window is among the events.
func (b *bench) windowCounts(keys int) []int64 {
	counts := make([]int64, b.windowKeys(keys).size)
	draw, next, first := draws(keys), b.times(), b.timesBegin().Add(-windowSize)
	for range b.records {
		counts[int(next().Sub(first)/windowSize)*keys+draw()]++
	}
	return counts
}

// windowed counts by key and minute, and sends each update on.
func (b *bench) windowed(ctx context.Context) error {
	in, err := b.events(ctx, b.small, b.partitions)
	if err != nil {
		return err
	}
	want := b.windowCounts(b.small)
	var both []contender
	for _, s := range b.sides() {
		both = append(both, contender{s.name(), "", func(ctx context.Context) (map[string]float64, error) {
			j := newJob(windowedJob, in.topic, atLeastOnce, shortCommit)
			return b.throughput(ctx, s, j, b.partitions, in, func() error {
				return b.verifyCounts(ctx, j.output, b.windowKeys(b.small), want, true)
			})
		}})
	}
	name := fmt.Sprintf("%s, windows of %v over %v", countCase(keysCase(b.small), atLeastOnce), windowSize, eventSpan)
	return b.alternate(ctx, "windowed", name, both...)
}
