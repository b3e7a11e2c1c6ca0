package check

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// fires has series of sixty steps under which an alert's expression holds at the end, and series under which it does not.
var fires = map[string]struct{ yes, no string }{
	"StreamworkerTaskFails": {
		`streamworker_failing_tasks{job="words", instance="a"} 0+0x58 1 1`,
		`streamworker_failing_tasks{job="words", instance="a"} 1+0x58 0 0`,
	},
	"StreamworkerTasksMissing": {
		`streamworker_tasks{job="words", instance="a", role="active"} 4+0x60
		 streamworker_tasks{job="words", instance="b", role="active"} 4+0x50 0+0x9`,
		`streamworker_tasks{job="words", instance="a", role="active"} 4+0x50 8+0x9
		 streamworker_tasks{job="words", instance="b", role="active"} 4+0x50 0+0x9
		 streamworker_tasks{job="words", instance="b", role="standby"} 4+0x50 0+0x9`,
	},
	"StreamworkerInstanceDoesNotStart": {
		`streamworker_instance_state{job="words", instance="a", state="starting"} 1+0x60`,
		`streamworker_instance_state{job="words", instance="a", state="starting"} 0+0x60
		 streamworker_instance_state{job="words", instance="a", state="running"} 1+0x60`,
	},
	"StreamworkerLagGrows": {
		`streamworker_input_lag_records{job="words", instance="a", task="0_0"} 0+1000x60`,
		`streamworker_input_lag_records{job="words", instance="a", task="0_0"} 90000-1000x60`,
	},
	"StreamworkerDrainStalls": {
		`streamworker_instance_state{job="words", instance="a", state="draining"} 1+0x60
		 streamworker_handovers_total{job="words", instance="a", role="release"} 3+0x60
		 streamworker_handovers_total{job="words", instance="b", role="release"} 0+1x60`,
		`streamworker_instance_state{job="words", instance="a", state="draining"} 1+0x60
		 streamworker_handovers_total{job="words", instance="a", role="release"} 0+1x60`,
	},
	"StreamworkerHandoversSlow": {
		`streamworker_handover_gap_seconds_bucket{job="words", instance="a", le="5"} 0+0x60
		 streamworker_handover_gap_seconds_bucket{job="words", instance="a", le="10"} 0+1x60
		 streamworker_handover_gap_seconds_bucket{job="words", instance="a", le="+Inf"} 0+1x60`,
		`streamworker_handover_gap_seconds_bucket{job="words", instance="a", le="5"} 0+1x60
		 streamworker_handover_gap_seconds_bucket{job="words", instance="a", le="10"} 0+1x60
		 streamworker_handover_gap_seconds_bucket{job="words", instance="a", le="+Inf"} 0+1x60`,
	},
	"StreamworkerCommitsUnanswered": {
		`streamworker_commit_seconds_count{job="words", instance="a", outcome="unanswered"} 0+1x60`,
		`streamworker_commit_seconds_count{job="words", instance="a", outcome="unanswered"} 7+0x60
		 streamworker_commit_seconds_count{job="words", instance="a", outcome="refused"} 0+1x60`,
	},
	"StreamworkerTransactionsAbort": {
		`streamworker_transaction_aborts_total{job="words", instance="a"} 0+1x60`,
		`streamworker_transaction_aborts_total{job="words", instance="a"} 5+0x60`,
	},
	"StreamworkerGroupUnstable": {
		`streamworker_group_generation{job="words", instance="a"} 0+1x60`,
		`streamworker_group_generation{job="words", instance="a"} 9+0x60`,
	},
	"StreamworkerBadRecords": {
		`streamworker_bad_records_total{job="words", instance="a", handling="skipped"} 0+1x60`,
		`streamworker_bad_records_total{job="words", instance="a", handling="skipped"} 3+0x60`,
	},
}

// Each alert fires when it should, and only then.
func TestRules(t *testing.T) {
	p := parser.NewParser(parser.Options{})
	groups, errs := rulefmt.ParseFile("../prometheus/streamworker.rules.yml", false, model.LegacyValidation, p, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		return
	}
	tried := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			c, ok := fires[r.Alert]
			if !ok {
				t.Errorf("%s is not tried", r.Alert)
				continue
			}
			tried++
			step := "1m"
			// Its range has to hold many changes.
			if strings.Contains(r.Expr, "changes(") {
				step = "10s"
			}
			if got := holds(t, step, c.yes, r.Expr); got != 1 {
				t.Errorf("%s: %d alerts, want one", r.Alert, got)
			}
			if got := holds(t, step, c.no, r.Expr); got != 0 {
				t.Errorf("%s: %d alerts, want none", r.Alert, got)
			}
		}
	}
	if tried != len(fires) {
		t.Errorf("%d of %d alerts are there", tried, len(fires))
	}
}

// An autoscaler is given as many instances as the load needs.
func TestNeededInstances(t *testing.T) {
	const file = "../prometheus/streamworker.rules.yml"
	groups, errs := rulefmt.ParseFile(file, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var expr string
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Record == neededInstances {
				expr = r.Expr
			}
		}
	}
	// Two instances of four threads, each at 3,000 records/s; a record takes a millisecond of a thread.
	const busy = `
		streamworker_threads{job="words", instance="a"} 4+0x60
		streamworker_threads{job="words", instance="b"} 4+0x60
		streamworker_instance_state{job="words", instance="a", state="running"} 1+0x60
		streamworker_instance_state{job="words", instance="b", state="running"} 1+0x60
		streamworker_records_total{job="words", instance="a", direction="in"} 0+180000x60
		streamworker_records_total{job="words", instance="b", direction="in"} 0+180000x60
		streamworker_processing_seconds_total{job="words", instance="a"} 0+180x60
		streamworker_processing_seconds_total{job="words", instance="b"} 0+180x60`
	for name, c := range map[string]struct {
		series string
		want   float64
	}{
		"more arrives": {busy + `
			streamworker_arriving_records_per_second{job="words", instance="a"} 4000+0x60
			streamworker_arriving_records_per_second{job="words", instance="b"} 4000+0x60
			streamworker_input_lag_records{job="words", instance="a", task="0_0"} 60+0x60`, 3},
		"much is behind": {busy + `
			streamworker_arriving_records_per_second{job="words", instance="a"} 3000+0x60
			streamworker_arriving_records_per_second{job="words", instance="b"} 3000+0x60
			streamworker_input_lag_records{job="words", instance="a", task="0_0"} 3000000+0x60`, 4},
		"less arrives": {busy + `
			streamworker_arriving_records_per_second{job="words", instance="a"} 1000+0x60
			streamworker_arriving_records_per_second{job="words", instance="b"} 1000+0x60
			streamworker_input_lag_records{job="words", instance="a", task="0_0"} 0+0x60`, 1},
		"nothing is processed": {`
			streamworker_threads{job="words", instance="a"} 4+0x60
			streamworker_instance_state{job="words", instance="a", state="running"} 1+0x60
			streamworker_instance_state{job="words", instance="b", state="running"} 1+0x60
			streamworker_instance_state{job="words", instance="c", state="running"} 0+0x60
			streamworker_records_total{job="words", instance="a", direction="in"} 9+0x60
			streamworker_processing_seconds_total{job="words", instance="a"} 9+0x60
			streamworker_arriving_records_per_second{job="words", instance="a"} 100+0x60
			streamworker_input_lag_records{job="words", instance="a", task="0_0"} 9000+0x60`, 2},
	} {
		got := evaluate(t, "1m", strings.TrimSpace(c.series), expr)
		if len(got) != 1 || got[0].F != c.want || got[0].Metric.Get("job") != "words" {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// holds counts what an expression gives at the end of sixty steps.
func holds(t *testing.T, step, series, expr string) int { return len(evaluate(t, step, series, expr)) }

// evaluate is what an expression gives at the end of sixty steps.
func evaluate(t *testing.T, step, series, expr string) promql.Vector {
	t.Helper()
	load := "load " + step + "\n"
	for line := range strings.Lines(series) {
		load += "  " + strings.TrimSpace(line) + "\n"
	}
	every, err := time.ParseDuration(step)
	if err != nil {
		t.Fatal(err)
	}
	engine := promqltest.NewTestEngine(t, false, 0, 1_000_000)
	q, err := engine.NewInstantQuery(t.Context(), promqltest.LoadedStorage(t, load), nil, expr, time.Unix(0, 0).Add(60*every))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	v, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Grafana's dashboard is well formed, and Prometheus understands what it asks for.
func TestDashboard(t *testing.T) {
	type target struct{ Expr, RefID string }
	var d struct {
		UID, Title  string
		Annotations struct{ List []target }
		Panels      []struct {
			ID      int
			Type    string
			Title   string
			Targets []target
			GridPos struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../grafana/streamworker.json")), &d); err != nil {
		t.Fatal(err)
	}
	p := parser.NewParser(parser.Options{})
	check := func(where, expr string) {
		expr = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(expr)
		if _, err := p.ParseExpr(expr); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	for _, a := range d.Annotations.List {
		check("annotation", a.Expr)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, panel := range d.Panels {
		if ids[panel.ID] || panel.ID == 0 {
			t.Errorf("%s: the id %d is not its own", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		if len(panel.Targets) == 0 && panel.Type != "row" {
			t.Errorf("%s shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			check(panel.Title, target.Expr)
		}
		g := panel.GridPos
		if g.X+g.W > 24 {
			t.Errorf("%s is out of the grid", panel.Title)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies over %s", panel.Title, other)
				}
				cells[[2]int{x, y}] = panel.Title
			}
		}
	}
	if d.UID == "" || len(d.Panels) < 10 {
		t.Errorf("uid %q, %d panels", d.UID, len(d.Panels))
	}
}
