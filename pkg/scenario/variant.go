package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Variant is a policy under which a scenario is run: that of its file, with some settings changed.
type Variant struct {
	Name     string // as it was written
	settings []func(*Learners, *assign.Policy)
}

// AsWritten is the file's own policy.
func AsWritten() Variant { return Variant{Name: "the file's policy"} }

// ParseVariant reads settings with a plus in between: eager, stable, or one of balancing_factor, max_learners and
// standbys with its value, e.g. stable+balancing_factor=4. "file" is the file's own policy.
func ParseVariant(text string) (Variant, error) {
	v := Variant{Name: text}
	for word := range strings.SplitSeq(text, "+") {
		name, value, _ := strings.Cut(word, "=")
		number, notNumber := strconv.ParseInt(value, 10, 32)
		set := func(field func(*assign.Policy) *int, least int64) error {
			if notNumber != nil || number < least {
				return fmt.Errorf("%q: want %s=N, N at least %d", word, name, least)
			}
			v.settings = append(v.settings, func(_ *Learners, p *assign.Policy) { *field(p) = int(min(number, math.MaxInt32)) })
			return nil
		}
		var err error
		switch name {
		case "file":
		case string(Eager), string(Stable):
			v.settings = append(v.settings, func(l *Learners, _ *assign.Policy) { *l = Learners(name) })
		case "balancing_factor":
			err = set(func(p *assign.Policy) *int { return &p.BalancingFactor }, 2)
		case "max_learners":
			err = set(func(p *assign.Policy) *int { return &p.MaxLearners }, 0)
		case "standbys":
			err = set(func(p *assign.Policy) *int { return &p.Standbys }, 0)
		default:
			err = fmt.Errorf("%q is no policy: want eager, stable, balancing_factor=N, max_learners=N, standbys=N, several with + in between, or file", word)
		}
		if err != nil {
			return Variant{}, err
		}
	}
	return v, nil
}

// With returns the scenario under another policy.
func (s *Scenario) With(v Variant) *Scenario {
	c := *s
	for _, set := range v.settings {
		set(&c.learners, &c.policy)
	}
	return &c
}
