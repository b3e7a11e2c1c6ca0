package chaos

import (
	"testing"
	"time"
)

func options(kind Kind) Options {
	return Options{Kind: kind, Length: 10 * time.Minute, Session: 6 * time.Second, Instances: []string{"a", "b", "c", "d"}, Brokers: 3}
}

func TestSeedRepeatsSchedule(t *testing.T) {
	for _, kind := range []Kind{Faults, Planned} {
		one, same, other := Format(Plan(7, options(kind))), Format(Plan(7, options(kind))), Format(Plan(8, options(kind)))
		if one != same {
			t.Errorf("%s: one seed made two schedules:\n%s\n%s", kind, one, same)
		}
		if one == other {
			t.Errorf("%s: two seeds made one schedule", kind)
		}
	}
}

// TestEverythingComesBack follows many schedules: what is taken away is given back, no two brokers are away at one
// time, and every kind of step occurs.
func TestEverythingComesBack(t *testing.T) {
	ends := map[Op][]Op{Kill: {Start}, Stop: {Cont, Kill}, Term: {Start}, Leave: {Start}, Cut: {Heal}}
	for _, kind := range []Kind{Faults, Planned} {
		seen := map[Op]int{}
		for seed := range uint64(50) {
			away := map[string]Op{}
			broker := -1
			for _, s := range Plan(seed, options(kind)) {
				seen[s.Op]++
				switch s.Op {
				case BrokerKill, BrokerTerm, BrokerHang:
					if broker >= 0 {
						t.Fatalf("%s, seed %d: %s while broker %d is away", kind, seed, s, broker)
					}
					broker = s.Broker
				case BrokerStart, BrokerCont:
					if broker != s.Broker {
						t.Fatalf("%s, seed %d: %s, away is %d", kind, seed, s, broker)
					}
					broker = -1
				case Kill, Stop, Term, Leave, Cut:
					away[s.Instance] = s.Op
				case Start, Cont, Heal:
					for _, end := range ends[away[s.Instance]] {
						if end == s.Op {
							delete(away, s.Instance)
						}
					}
				case Cancel, SlowFor:
				}
			}
			if broker >= 0 || len(away) > 0 {
				t.Errorf("%s, seed %d: broker %d and instances %v do not come back", kind, seed, broker, away)
			}
		}
		for _, op := range []Op{Start, Kill, Stop, Cont, Term, Leave, Cancel, Cut, Heal, SlowFor, BrokerKill, BrokerTerm, BrokerStart, BrokerHang, BrokerCont} {
			dies := op == Kill || op == Cut || op == Heal || op == BrokerKill || op == BrokerTerm || op == BrokerStart || op == BrokerHang || op == BrokerCont
			if (seen[op] > 0) == (dies && kind == Planned) {
				t.Errorf("%s schedules have %d steps %s", kind, seen[op], op)
			}
		}
	}
}

// TestPlannedStopsAreShort: nothing in a planned schedule outlives a session.
func TestPlannedStopsAreShort(t *testing.T) {
	o := options(Planned)
	for seed := range uint64(50) {
		since := map[string]time.Duration{}
		for _, s := range Plan(seed, o) {
			switch s.Op {
			case Stop:
				since[s.Instance] = s.At
			case Cont:
				if length := s.At - since[s.Instance]; length > o.Session/2 {
					t.Errorf("seed %d: %s stands still for %v", seed, s.Instance, length)
				}
			default:
			}
		}
	}
}

// TestLateRequests: without Late, nothing that was held for a session is delivered.
func TestLateRequests(t *testing.T) {
	for _, late := range []bool{false, true} {
		o := options(Faults)
		o.Late = late
		delivered := 0
		for seed := range uint64(50) {
			since := map[string]time.Duration{}
			for _, s := range Plan(seed, o) {
				switch s.Op {
				case Cut:
					since[s.Instance] = s.At
				case Heal:
					if s.At-since[s.Instance] >= o.Session && s.Arg == ArgDeliver {
						delivered++
					}
				default:
				}
			}
		}
		if (delivered > 0) != late {
			t.Errorf("late %v: %d times requests are delivered after their session", late, delivered)
		}
	}
}
