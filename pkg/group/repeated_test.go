package group

import (
	"testing"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// A follower may join anew with what it has said before: it was told to hurry, and the round it was to join has
// just ended. No round follows, and it is given the running plan once more. Its tasks have to hear of that, as
// with each join they wait for a plan before they ask for a round.
func TestPlanOfAJoinWithoutARoundIsHandedOver(t *testing.T) {
	onKafka(t, func(t *testing.T, k *cluster) {
		cfg := k.config(4, true)
		a := k.start(cfg, "a") // leads
		eventually(t, "one member", func() bool { return settled(4, a) })
		b := k.start(cfg, "b")
		eventually(t, "two members", func() bool { return settled(4, a, b) })
		b.change(func(*assign.Report) {})
		eventually(t, "what they have is said", func() bool { return settled(4, a, b) && b.seen() == 1 })
		before := b.generations()
		b.m.rejoin()
		eventually(t, "a plan for the join", func() bool { return len(b.generations()) > len(before) })
		if g := b.generations(); g[len(g)-1] != before[len(before)-1] || len(b.losses()) > 0 {
			t.Fatalf("plans of generations %v, losses %v", g, b.losses())
		}
	})
}
