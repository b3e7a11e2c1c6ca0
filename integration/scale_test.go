//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// TestScaleOut goes from one instance to three under load.
func TestScaleOut(t *testing.T) {
	size := keys
	if large {
		size = 1_000_000
	}
	scaleOut(t, broker, size)
}

// TestScaleOutExactlyOnce does it under exactly once.
func TestScaleOutExactlyOnce(t *testing.T) { scaleOut(t, broker, keys, exactlyOnce) }

// TestScaleOutWithDelay does it with the delay that brokers add to the first rebalance of an empty group by default.
func TestScaleOutWithDelay(t *testing.T) {
	scaleOut(t, harness.OwnKafka(t, "group.initial.rebalance.delay.ms=3000"), keys)
}

func scaleOut(t *testing.T, k *harness.Kafka, size int, settings ...string) {
	s := newScene(t, k, size, []string{"a"}, settings...)
	s.flow(rate)
	since := time.Now()
	s.watch.Reset()
	s.start("b")
	s.start("c")
	s.AwaitBalanced("a", "b", "c")
	moved := append(s.Status().Instance("b").Active, s.Status().Instance("c").Active...)
	took := s.awaitTakeovers(since, moved)
	t.Logf("%d tasks moved; %s", len(took), figures(took))
	s.reportPauses(append(s.partitionsOf("b"), s.partitionsOf("c")...))
	s.endExact()
}
