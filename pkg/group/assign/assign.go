package assign

// Assign plans a round: what each member does with which task from now on. It has two stages. The
// target says where every task should end, from the members that stay; the step is the next safe plan
// on the way there. Reports are taken as they come: unknown tasks and contradictory claims are settled,
// and Conflicts names those worth a log line. Member ids must be unique, as the coordinator's are.
//
// The plan has an entry for every member. It gives each task exactly one own, or one release with one
// take, and at most one learner.
func Assign(in Input) Plan {
	g := settle(in)
	g.target()
	return g.step()
}
