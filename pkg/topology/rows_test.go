package topology

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A bound never says that there is no row where there is one, whatever of a record is taken back.
func TestBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		p := &Processor{}
		b := unknownBound(p)
		var rows []int64
		for range 8 { // records
			marks := [][]int64{slices.Clone(rows)}
			for range rnd.IntN(8) {
				switch rnd.IntN(5) {
				case 0, 1:
					at := rnd.Int64N(20)
					rows = append(rows, at)
					b.lower(at, p)
				case 2: // rows up to a time go
					over := rnd.Int64N(20)
					if !b.reached(over, p) {
						break
					}
					rows = slices.DeleteFunc(slices.Clone(rows), func(at int64) bool { return at <= over })
					b.raise(over+1, p)
				case 3:
					marks = append(marks, slices.Clone(rows))
				case 4:
					rows = marks[rnd.IntN(len(marks))]
					p.rollbacks++
				}
				if len(rows) > 0 && !b.reached(slices.Min(rows), p) {
					t.Fatalf("there are rows %v, the bound is %d", rows, b.time)
				}
			}
			p.settle()
		}
	}
}
