package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Op is what a step does.
type Op string

// The steps. Those in the second group are for brokers.
const (
	Start   Op = "start" // also after the present process has ended, if it is about to
	Kill    Op = "kill"
	Stop    Op = "stop" // SIGSTOP
	Cont    Op = "cont" // SIGCONT
	Term    Op = "term" // SIGTERM
	Leave   Op = "leave"
	Cancel  Op = "cancel"
	Cut     Op = "cut"  // from all brokers
	Heal    Op = "heal" // the end of a cut
	SlowFor Op = "slow" // the disk of the instance hangs again and again

	BrokerKill  Op = "kill broker"
	BrokerTerm  Op = "stop broker"
	BrokerStart Op = "start broker"
	BrokerHang  Op = "hang broker" // SIGSTOP, until the same broker's
	BrokerCont  Op = "wake broker"
)

// Arguments of steps.
const (
	ArgNow     = "--now"        // of Leave
	ArgTimeout = "--timeout=2s" // of Leave

	ArgRequests = "requests" // of Cut: held, answers pass
	ArgAnswers  = "answers"  // of Cut: held, requests pass
	ArgBoth     = "both"     // of Cut: held
	ArgRefuse   = "refuse"   // of Cut: connections break

	ArgDeliver = "deliver" // of Heal: what was held arrives
	ArgDrop    = "drop"    // of Heal: what was held is lost

	ArgFresh = "fresh" // of Start: without the former state directory
)

// Step is one thing to do.
type Step struct {
	At       time.Duration
	Op       Op
	Instance string // "": of a broker
	Broker   int
	Arg      string
	Mode     string        // of Start: on_terminate
	For      time.Duration // of SlowFor
}

func (s Step) String() string {
	target := s.Instance
	if target == "" {
		target = fmt.Sprint(s.Broker)
	}
	text := fmt.Sprintf("%6.1fs %s %s", s.At.Seconds(), s.Op, target)
	for _, more := range []string{s.Arg, s.Mode} {
		if more != "" {
			text += " " + more
		}
	}
	if s.For > 0 {
		text += fmt.Sprintf(" for %.1fs", s.For.Seconds())
	}
	return text
}

// Kind is the kind of a schedule.
type Kind string

// The kinds.
const (
	Faults  Kind = "faults"  // everything
	Planned Kind = "planned" // what operators do, and hosts and disks that are slow for a moment: nothing dies
)

// Options say what to plan for.
type Options struct {
	Kind      Kind
	Length    time.Duration
	Session   time.Duration // of the group
	Instances []string
	Brokers   int
	// Late lets requests arrive after the session of the instance that sent them, which at least once
	// has no fence against.
	Late bool
}

// Modes are the values of on_terminate.
var Modes = []string{"keep", "release", "drain"}

// planner makes a schedule.
type planner struct {
	Options
	random *rand.Rand
	steps  []Step
	now    time.Duration
	until  map[string]time.Duration // by instance: when its present trouble is over
	broker time.Duration            // the earliest at which a broker may get trouble
}

// Plan makes the schedule of a seed. Equal arguments give equal schedules. Everything is started again within it, or
// soon after its end.
func Plan(seed uint64, o Options) []Step {
	p := &planner{Options: o, random: rand.New(rand.NewPCG(seed, uint64(len(o.Kind)))), until: map[string]time.Duration{}}
	troubles := p.faults()
	if o.Kind == Planned {
		troubles = p.planned()
	}
	total := 0
	for _, t := range troubles {
		total += t.weight
	}
	for p.now = p.between(0, time.Second); p.now < o.Length; p.now += p.between(300*time.Millisecond, 5*time.Second) {
		n := p.random.IntN(total)
		for _, t := range troubles {
			if n -= t.weight; n < 0 {
				t.make()
				break
			}
		}
	}
	slices.SortStableFunc(p.steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return p.steps
}

// trouble is a kind of fault, and how often it comes.
type trouble struct {
	weight int
	make   func()
}

func (p *planner) faults() []trouble {
	return []trouble{
		{6, p.on(p.kill)},
		{4, p.on(func(id string) { p.stop(id, 200*time.Millisecond, p.Session*2/3) })},
		{4, p.on(func(id string) { p.stop(id, p.Session+time.Second, p.Session*2) })},
		{1, p.on(p.stopAndKill)},
		{4, p.on(p.term)},
		{5, p.on(p.leave)},
		{2, p.on(p.leaveAndKill)},
		{3, p.on(p.leaveAndCancel)},
		{6, p.on(p.cut)},
		{3, p.on(p.slow)},
		{6, p.brokerTrouble},
		{1, p.killAll},
	}
}

func (p *planner) planned() []trouble {
	return []trouble{
		{4, p.on(p.term)},
		{4, p.on(p.leave)},
		{3, p.on(p.leaveAndCancel)},
		{1, p.on(func(id string) { p.stop(id, 200*time.Millisecond, p.Session/3) })},
		{1, p.on(p.slow)},
	}
}

func (p *planner) between(from, to time.Duration) time.Duration {
	return from + time.Duration(p.random.Int64N(int64(to-from))).Round(time.Millisecond)
}

// on makes trouble for an instance that has none, unless too many have.
func (p *planner) on(make func(id string)) func() {
	return func() {
		var well []string
		for _, id := range p.Instances {
			if p.until[id] <= p.now {
				well = append(well, id)
			}
		}
		id := p.random.IntN(len(p.Instances)) // drawn in any case
		if len(well) > max(1, len(p.Instances)/2-1) {
			make(well[id%len(well)])
		}
	}
}

func (p *planner) add(at time.Duration, id string, op Op, arg string) {
	p.steps = append(p.steps, Step{At: at, Instance: id, Op: op, Arg: arg})
	p.until[id] = max(p.until[id], at)
}

// start starts an instance again, some time after from.
func (p *planner) start(id string, from, least, most time.Duration) {
	s := Step{At: from + p.between(least, most), Instance: id, Op: Start, Mode: Modes[p.random.IntN(len(Modes))]}
	if p.random.IntN(5) == 0 {
		s.Arg = ArgFresh
	}
	p.steps = append(p.steps, s)
	// It is well once it has joined and has had some tasks.
	p.until[id] = s.At + p.between(time.Second, 4*time.Second)
}

func (p *planner) kill(id string) {
	p.add(p.now, id, Kill, "")
	p.start(id, p.now, 100*time.Millisecond, p.Session*2)
}

func (p *planner) stop(id string, least, most time.Duration) {
	p.add(p.now, id, Stop, "")
	p.add(p.now+p.between(least, most), id, Cont, "")
}

func (p *planner) stopAndKill(id string) {
	p.add(p.now, id, Stop, "")
	at := p.now + p.between(time.Second, p.Session*3/2)
	p.add(at, id, Kill, "")
	p.start(id, at, 100*time.Millisecond, p.Session)
}

func (p *planner) term(id string) {
	p.add(p.now, id, Term, "")
	p.start(id, p.now, 100*time.Millisecond, p.Session)
}

func (p *planner) leave(id string) {
	args := []string{"", "", "", ArgNow, ArgTimeout}
	p.add(p.now, id, Leave, args[p.random.IntN(len(args))])
	p.start(id, p.now, 3*time.Second, 10*time.Second)
}

func (p *planner) leaveAndKill(id string) {
	p.add(p.now, id, Leave, "")
	at := p.now + p.between(200*time.Millisecond, 3*time.Second)
	p.add(at, id, Kill, "")
	p.start(id, at, 100*time.Millisecond, p.Session)
}

func (p *planner) leaveAndCancel(id string) {
	p.add(p.now, id, Leave, "")
	at := p.now + p.between(200*time.Millisecond, 3*time.Second)
	p.add(at, id, Cancel, "")
	p.start(id, at, time.Second, 3*time.Second) // if it was too late
}

func (p *planner) cut(id string) {
	how := []string{ArgRequests, ArgAnswers, ArgBoth, ArgRefuse}[p.random.IntN(4)]
	length := p.between(500*time.Millisecond, p.Session/2)
	long := p.random.IntN(2) == 0
	if long {
		length = p.between(p.Session, p.Session*2)
	}
	heal := []string{ArgDeliver, ArgDrop}[p.random.IntN(2)]
	if long && !p.Late {
		heal = ArgDrop
	}
	p.add(p.now, id, Cut, how)
	p.add(p.now+length, id, Heal, heal)
}

func (p *planner) slow(id string) {
	length := p.between(time.Second, 6*time.Second)
	p.steps = append(p.steps, Step{At: p.now, Instance: id, Op: SlowFor, For: length})
	p.until[id] = p.now + length
}

// brokerTrouble takes one broker away for a while, or lets it hang. There is time between two of these for the
// replicas to be in sync again.
func (p *planner) brokerTrouble() {
	broker, how := p.random.IntN(p.Brokers), p.random.IntN(4)
	if p.now < p.broker {
		return
	}
	s := Step{At: p.now, Broker: broker, Op: BrokerKill}
	back := Step{Broker: broker, Op: BrokerStart, At: p.now + p.between(500*time.Millisecond, 8*time.Second)}
	switch how {
	case 0:
		s.Op = BrokerTerm
	case 1:
		s.Op, back.Op = BrokerHang, BrokerCont
	}
	p.steps = append(p.steps, s, back)
	p.broker = back.At + 12*time.Second
}

// killAll kills every instance that is well, at once.
func (p *planner) killAll() {
	for _, id := range p.Instances {
		if p.until[id] <= p.now {
			p.kill(id)
		}
	}
}

// Format is a schedule as text.
func Format(steps []Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}
