package topology

import (
	"log/slog"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// logStep writes a line to the log for each message, and hands it on.
type logStep struct {
	stream string
	what   *expression
}

func (s *logStep) String() string { return "log " + s.what.text }

func (s *logStep) start(c *chain, next operator) operator {
	return &logOperator{logStep: s, p: c.p, next: next}
}

type logOperator struct {
	*logStep
	p    *Processor
	next operator
}

func (o *logOperator) process(m *message) error {
	v, err := o.p.eval.run(o.what, m, nil)
	if err != nil {
		return fault{err}
	}
	if o.p.log != nil {
		o.p.log.Info("a record passes", "stream", o.stream, "timestamp", m.ts, "record", v)
	}
	return o.next.process(m)
}

// SetLogger sets where steps write that log; nil, the default: nowhere.
func (p *Processor) SetLogger(l *slog.Logger) { p.log = l }

// logs adds a step that logs.
func (c *cutter) logs(arg, at yamlnode.Node) {
	if !arg.Exists() {
		at.Errorf("log: value, or log: '[key, value]'", "want an expression: what to log of each record")
		return
	}
	if e := c.expression(arg); e != nil {
		c.add(&logStep{stream: c.name, what: e})
	}
}
