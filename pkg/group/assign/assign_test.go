package assign

import (
	"fmt"
	"math/rand"
	"testing"
)

func BenchmarkAssign(b *testing.B) {
	const members, tasks = 1000, 10000
	for _, bm := range []struct {
		name string
		in   func() Input
	}{
		{"rest", func() Input { return spread(members, tasks, members) }},
		{"tenth leaves", func() Input {
			in := spread(members, tasks, members)
			for i := range members / 10 {
				in.Members[i].Leaving = true
			}
			return in
		}},
		{"one owns all", func() Input { return spread(members, tasks, 1) }},
		{"unowned", func() Input { return spread(members, tasks, 0) }},
		{"half leave, two standbys", func() Input {
			in := spread(members, tasks, members)
			in.Policy.Standbys = 2
			for i := range members / 2 {
				in.Members[i].Leaving = true
			}
			return in
		}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			in := bm.in()
			b.ReportAllocs()
			for b.Loop() {
				Assign(in)
			}
		})
	}
}

// BenchmarkGrowth shows how the cost of a plan grows with the group: a tenth of the members leaves.
func BenchmarkGrowth(b *testing.B) {
	for _, members := range []int{100, 300, 1000} {
		for _, tasks := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%d members, %d tasks", members, tasks), func(b *testing.B) {
				in := spread(members, tasks, members)
				for i := range members / 10 {
					in.Members[i].Leaving = true
				}
				b.ReportAllocs()
				for b.Loop() {
					Assign(in)
				}
			})
		}
	}
}

// spread is a group whose tasks lie on the first owners in turn, members in random order.
func spread(members, tasks, owners int) Input {
	in := Input{Generation: 7}
	for t := range tasks {
		in.Tasks = append(in.Tasks, Task{ID: TaskID{Partition: int32(t)}, Stateful: t%5 != 0})
	}
	for m := range members {
		name := fmt.Sprintf("instance-%04d", m)
		in.Members = append(in.Members, Member{ID: name + "-0b7c7f0e", Report: Report{Instance: name}})
	}
	for t := range tasks {
		if owners > 0 {
			m := &in.Members[t%owners]
			m.Owned = append(m.Owned, in.Tasks[t].ID)
		}
	}
	rand.New(rand.NewSource(1)).Shuffle(members, func(i, j int) { in.Members[i], in.Members[j] = in.Members[j], in.Members[i] })
	return in
}
