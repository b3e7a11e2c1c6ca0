package assign

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

func BenchmarkAssign(b *testing.B) {
	for _, size := range []struct{ members, tasks int }{{1000, 10_000}, {1000, 100_000}} {
		for _, bm := range []struct {
			name string
			in   func() Input
		}{
			{"rest", func() Input { return spread(size.members, size.tasks, size.members) }},
			{"tenth leaves", func() Input { return leave(spread(size.members, size.tasks, size.members), 10) }},
			{"one owns all", func() Input { return spread(size.members, size.tasks, 1) }},
			{"unowned", func() Input { return spread(size.members, size.tasks, 0) }},
			{"half leave, two standbys", func() Input {
				in := leave(spread(size.members, size.tasks, size.members), 2)
				in.Policy.Standbys = 2
				return in
			}},
			{"half leave, two standbys, racks, subtopologies", func() Input {
				in := leave(spread(size.members, size.tasks, size.members), 2)
				in.Policy.Standbys = 2
				return diverse(in)
			}},
			{"one owns all, racks, subtopologies", func() Input { return diverse(spread(size.members, size.tasks, 1)) }},
			{"unowned, racks, subtopologies", func() Input { return diverse(spread(size.members, size.tasks, 0)) }},
		} {
			b.Run(fmt.Sprintf("%d members, %d tasks, %s", size.members, size.tasks, bm.name), func(b *testing.B) {
				in := bm.in()
				b.ReportAllocs()
				for b.Loop() {
					Assign(in)
				}
			})
		}
	}
}

// leave marks one of so many members as leaving.
func leave(in Input, of int) Input {
	for i := range len(in.Members) / of {
		in.Members[i].Leaving = true
	}
	return in
}

// diverse puts members into three racks, the input of each task into two of these, and tasks into five subtopologies.
func diverse(in Input) Input {
	racks := []string{"a", "b", "c"}
	id := make(map[TaskID]TaskID)
	for i := range in.Tasks {
		t := &in.Tasks[i]
		to := TaskID{Subtopology: int32(i % 5), Partition: int32(i / 5)}
		t.Stateful = to.Subtopology != 0
		id[t.ID], t.ID = to, to
		t.Racks = slices.Delete(slices.Clone(racks), i/5%3, i/5%3+1)
	}
	for i := range in.Members {
		m := &in.Members[i]
		m.Rack = racks[i%3]
		for j, owned := range m.Owned {
			m.Owned[j] = id[owned]
		}
	}
	return in
}

// BenchmarkGrowth shows how the cost of a plan grows with the group: a tenth of the members leaves.
func BenchmarkGrowth(b *testing.B) {
	for _, members := range []int{100, 300, 1000} {
		for _, tasks := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%d members, %d tasks", members, tasks), func(b *testing.B) {
				in := leave(spread(members, tasks, members), 10)
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
