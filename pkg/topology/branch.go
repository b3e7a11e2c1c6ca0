package topology

import (
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// branchStep sends each message the way of the first condition that is true for it. What fits none is dropped.
type branchStep struct{ ways []way }

type way struct {
	cond *expression // nil: the rest
	flow *flow
}

func (s *branchStep) String() string {
	texts := make([]string, len(s.ways))
	for i, w := range s.ways {
		if texts[i] = w.flow.branch; w.cond != nil {
			texts[i] += ": " + w.cond.text
		}
	}
	return "branch " + strings.Join(texts, ", ")
}

func (s *branchStep) start(c *chain, _ operator) operator {
	o := &branchOperator{branchStep: s, x: &c.p.eval}
	for _, w := range s.ways {
		o.outs = append(o.outs, c.assembly.flow(w.flow))
	}
	return o
}

type branchOperator struct {
	*branchStep
	x    *evaluator
	outs []operator // by way
}

func (o *branchOperator) process(m *message) error {
	for i, w := range o.ways {
		if w.cond != nil {
			pass, err := o.x.truth(w.cond, m)
			if err != nil {
				return fault{err}
			}
			if !pass {
				continue
			}
		}
		return o.outs[i].process(m)
	}
	return nil
}

// branch ends the stream in several ways, which others take up by name.
func (c *cutter) branch(arg, at yamlnode.Node) {
	items := arg.List()
	if len(items) == 0 {
		at.Errorf("branch: [{name: big, when: value > 100}, {name: rest}]", "want a list of branches")
		return
	}
	s := &branchStep{}
	for i, item := range items {
		m := item.Map()
		name, when := m.Require("name", "others take it up by its name: from: {stream: "+c.name+", branch: NAME}"), m.Get("when")
		m.Done()
		w := way{flow: &flow{seg: c.segment, branch: name.String("")}}
		for _, before := range s.ways {
			if before.flow.branch == w.flow.branch {
				name.Errorf("rename one of them", "a second branch is called %q", w.flow.branch)
			}
		}
		switch {
		case when.Exists():
			if w.cond = c.condition(when, "branch"); w.cond == nil {
				return
			}
		case i < len(items)-1:
			item.Errorf("put it last", "a branch without a condition takes all that is left")
		}
		s.ways = append(s.ways, w)
	}
	for _, w := range s.ways {
		w.flow.place = c.place
		c.entry.ends = append(c.entry.ends, w.flow)
	}
	c.add(s)
	c.ended = &at
}
