package scenario

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// TestScripts runs the scenarios in testdata. Commands take a scenario as input:
//
//	text     prints the result as people read it
//	json     prints it as programs do
//	compare  prints eager and stable side by side
//	error    prints what is wrong with it
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			s, err := Parse("scenario.yaml", []byte(d.Input))
			var r Result
			if err == nil {
				r, err = s.Run()
			}
			switch {
			case d.Cmd == "error" && err == nil:
				return "no error"
			case d.Cmd == "error":
				return err.Error() + "\n"
			case err != nil:
				d.Fatalf(t, "%v", err)
			case d.Cmd == "compare":
				var c Comparison
				if c, err = Compare(s, both(t)...); err == nil {
					err = c.WriteText(&b)
				}
			case d.Cmd == "json":
				err = r.WriteJSON(&b)
			case d.Cmd == "text":
				err = r.WriteText(&b)
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return b.String()
		})
	})
}

// variants parses policies.
func variants(t *testing.T, names ...string) (all []Variant) {
	t.Helper()
	for _, name := range names {
		v, err := ParseVariant(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func both(t *testing.T) []Variant { return variants(t, "eager", "stable") }

func TestParseVariant(t *testing.T) {
	s, err := Parse("small.yaml", []byte("tasks: []\npolicy: {learners: stable, standbys: 2}"))
	if err != nil {
		t.Fatal(err)
	}
	v := variants(t, "file", "eager+balancing_factor=4+max_learners=1", "stable+standbys=0")
	for i, want := range []struct {
		learners Learners
		policy   assign.Policy
	}{
		{Stable, assign.Policy{BalancingFactor: 2, Standbys: 2}},
		{Eager, assign.Policy{BalancingFactor: 4, MaxLearners: 1, Standbys: 2}},
		{Stable, assign.Policy{BalancingFactor: 2}},
	} {
		if got := s.With(v[i]); got.learners != want.learners || got.policy != want.policy {
			t.Errorf("%s: %s, %+v", v[i].Name, got.learners, got.policy)
		}
	}
	if s.policy.BalancingFactor != 2 || s.learners != Stable {
		t.Errorf("the scenario itself has changed: %+v", s.policy)
	}
	for _, text := range []string{"", "eagre", "balancing_factor=1", "standbys=", "max_learners=-1", "eager+", "standbys=one"} {
		if _, err := ParseVariant(text); err == nil {
			t.Errorf("%q is taken for a policy", text)
		}
	}
}
