package sim

// Rule is a rule that a simulated process, or its leader, can be made to break.
type Rule uint8

// The rules that can be broken, each with what is done instead.
const (
	None                   Rule = iota
	TokenIdentity               // any token starts the taker
	TokenAwaited                // the taker starts without a token
	TokenPositions              // the taker starts before its state is where the token says
	IdentityKept                // a repeated order gets a new identity
	LookWhenToldAgain           // an owner told again commits without looking
	ReopenAfterRelease          // told `own` after a release, the owner goes on from memory
	SilenceAfterUnanswered      // after a commit without an answer the next one is sent under the same lease
	LeaseFixed                  // a refused commit is sent again under the newest lease
	LeaseOwns                   // a process goes on with tasks that its plan does not name
	TakingClaimed               // `taking` is reported as nothing
	ReleaseOrdered              // owners give up their tasks at the join, before a plan says so
	FlushBeforeRelease          // the release is committed before the changelog is written
	ReadyWhenCaughtUp           // learners say ready at once
	ClaimsWhatRuns              // a join claims what the last plan said, whether or not it was acted on
	PlanBeforeReport            // a plan is adopted after the next join was sent
	OrderOutdatesWork           // the outcome of work for an earlier order counts for the present one
	OpenAfterAnswer             // a failed task is opened while a commit of it may still arrive
	numRules
)

var ruleNames = [numRules]string{
	"none", "token identity", "token awaited", "token positions", "identity kept", "look when told again", "reopen after release",
	"silence after unanswered", "lease fixed", "lease owns", "taking claimed", "release ordered", "flush before release",
	"ready when caught up", "claims what runs", "plan before report", "order outdates work", "open after answer",
}

var ruleBreaks = [numRules]string{
	"", "any token starts the taker", "the taker starts without a token", "the taker starts before its state is where the token says",
	"a repeated order gets a new identity", "an owner told again commits without looking", "told own after a release, the owner goes on from memory",
	"after a commit without an answer the next is sent under the same lease", "a refused commit is sent again under the newest lease",
	"a process goes on with tasks that its plan does not name", "taking is reported as nothing", "owners give up their tasks at the join",
	"the release is committed before the changelog is written", "learners say ready at once", "a join claims what the last plan said",
	"a plan is adopted after the next join was sent", "the outcome of work for an earlier order counts", "a failed task is opened while a commit may still arrive",
}

// Rules are all the rules that can be broken.
func Rules() []Rule {
	var rules []Rule
	for r := None + 1; r < numRules; r++ {
		rules = append(rules, r)
	}
	return rules
}

// String is the rule's name.
func (r Rule) String() string { return ruleNames[r] }

// Broken says what a process does that breaks the rule.
func (r Rule) Broken() string { return ruleBreaks[r] }
