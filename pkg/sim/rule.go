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

	// Exactly once.
	OffsetsInTransaction  // offsets are committed beside the transaction, before it ends
	TokenInTransaction    // the release is committed beside it
	TransactionNamesLease // offsets are added to it under no lease
	LeaseCoversAll        // the transaction goes on though a plan has taken a task of it away
	StableOffsets         // an offset is taken as committed while a transaction is pending on it
	ReadCommitted         // copies and restores read what is not committed
	RestoreToLogEnd       // restored to what can be read, not to the log's end
	FenceBeforeOpen       // a task is opened without ending what dead writers have left open
	UnknownIsNotSuccess   // an EndTxn without an answer counts as done
	UnknownIsNotFailure   // it counts as not done, and its work is done again from memory
	NewEpochAfterAbort    // after an abort the process goes on in the same producer epoch
	AbortRewindsAll       // after an abort only the task that caused it is opened anew
	AbortEndsReleases     // after an abort a release goes on, with the offsets that the task was opened at
	HeldAfterCut          // a task writes into a transaction that it has been cut off from
	RenewalAborts         // a producer that starts anew within a transaction goes on with it
	SettledBeforeOpen     // a task is opened before the new epoch has settled what the last transaction came to
	numRules
)

var ruleNames = [numRules]string{
	"none", "token identity", "token awaited", "token positions", "identity kept", "look when told again", "reopen after release",
	"silence after unanswered", "lease fixed", "lease owns", "taking claimed", "release ordered", "flush before release",
	"ready when caught up", "claims what runs", "plan before report", "order outdates work", "open after answer",
	"offsets in transaction", "token in transaction", "transaction names lease", "lease covers all", "stable offsets", "read committed",
	"restore to log end", "fence before open", "unknown is not success", "unknown is not failure", "new epoch after abort",
	"abort rewinds all", "abort ends releases", "held after cut", "renewal aborts", "settled before open",
}

var ruleBreaks = [numRules]string{
	"", "any token starts the taker", "the taker starts without a token", "the taker starts before its state is where the token says",
	"a repeated order gets a new identity", "an owner told again commits without looking", "told own after a release, the owner goes on from memory",
	"after a commit without an answer the next is sent under the same lease", "a refused commit is sent again under the newest lease",
	"a process goes on with tasks that its plan does not name", "taking is reported as nothing", "owners give up their tasks at the join",
	"the release is committed before the changelog is written", "learners say ready at once", "a join claims what the last plan said",
	"a plan is adopted after the next join was sent", "the outcome of work for an earlier order counts", "a failed task is opened while a commit may still arrive",
	"offsets are committed beside the transaction, before it ends", "the release is committed beside the transaction",
	"offsets are added to the transaction under no lease", "the transaction goes on though a plan has taken a task of it away",
	"an offset is taken as committed while a transaction is pending on it", "copies and restores read what is not committed",
	"a task is restored to what can be read, not to the log's end", "a task is opened without ending what the dead have left open",
	"an EndTxn without an answer counts as done", "an EndTxn without an answer counts as not done: again, from memory",
	"after an abort the process goes on in the same producer epoch", "after an abort only the task that caused it is opened anew",
	"after an abort a release goes on, with what the task was opened at", "a task writes into a transaction that it has been cut off from",
	"a producer that starts anew within a transaction goes on with it",
	"a task is opened before the last transaction is settled",
}

// Rules are all the rules that can be broken.
func Rules() []Rule {
	var rules []Rule
	for r := None + 1; r < numRules; r++ {
		rules = append(rules, r)
	}
	return rules
}

// exactlyOnce says whether the rule is one of exactly once only.
func (r Rule) exactlyOnce() bool { return r >= OffsetsInTransaction }

// String is the rule's name.
func (r Rule) String() string { return ruleNames[r] }

// Broken says what a process does that breaks the rule.
func (r Rule) Broken() string { return ruleBreaks[r] }
