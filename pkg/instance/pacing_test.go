package instance

import "testing"

func TestGrowth(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live, rows uint64 // MiB
		want       int    // percent, without the one that is added
	}{
		{0, 0, 999},            // nothing was collected yet
		{10, 0, 200},           // the least growth
		{1, 1000, 999},         // bounded
		{99, 0, 33},            // a third of it
		{1000, 0, 33},          // whatever the size
		{100, 60, 20},          // the least growth, of much
		{200, 80, 20},          // a third of what is not rows
		{4000, 3900, 0},        // rows may be most of it
		{100, 200, 20},         // not collected yet since rows were dropped
		{10_000, 4_000, 20},    // there is more of both
		{10_000, 10_000, 0},    // nothing else
		{500_000, 200_000, 20}, // no overflow
	} {
		if got := growth(c.live*mib, c.rows*mib); got != c.want+1 {
			t.Errorf("%d MiB live, %d of rows: %d%%, want %d%%", c.live, c.rows, got, c.want+1)
		}
	}
}
