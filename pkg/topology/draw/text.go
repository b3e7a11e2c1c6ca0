package draw

import (
	"fmt"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology"
)

// DOT draws a topology in Graphviz's language.
func DOT(app string, g topology.Graph) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	var b, arrows strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", quote(app))
	for _, s := range g.Subtopologies {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=\"subtopology %d\";\n", s.ID, s.ID)
		for _, one := range s.Steps {
			fmt.Fprintf(&b, "    %s [label=%s];\n", one.ID, quote(one.Label))
			if one.Store != "" {
				fmt.Fprintf(&b, "    %s_store [shape=cylinder, label=%s];\n", one.ID, quote(one.Store))
				fmt.Fprintf(&arrows, "  %s -> %s_store [style=dotted, dir=none];\n", one.ID, one.ID)
			}
		}
		b.WriteString("  }\n")
	}
	for _, topic := range g.Topics {
		style := "rounded"
		if topic.Internal {
			style = "\"rounded,dashed\""
		}
		fmt.Fprintf(&b, "  %s [style=%s, label=%s];\n", topic.ID, style, quote(topic.Label))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&arrows, "  %s -> %s;\n", e.From, e.To)
	}
	return b.String() + arrows.String() + "}\n"
}

// Mermaid draws a topology as a Mermaid flowchart.
func Mermaid(g topology.Graph) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer("#", "#35;", "&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(s) + `"`
	}
	var b, arrows strings.Builder
	b.WriteString("flowchart LR\n")
	for _, s := range g.Subtopologies {
		fmt.Fprintf(&b, "  subgraph sub%d [\"subtopology %d\"]\n", s.ID, s.ID)
		for _, one := range s.Steps {
			fmt.Fprintf(&b, "    %s[%s]\n", one.ID, quote(one.Label))
			if one.Store != "" {
				fmt.Fprintf(&b, "    %s_store[(%s)]\n", one.ID, quote(one.Store))
				fmt.Fprintf(&arrows, "  %s -.- %s_store\n", one.ID, one.ID)
			}
		}
		b.WriteString("  end\n")
	}
	internal := ""
	for _, topic := range g.Topics {
		fmt.Fprintf(&b, "  %s([%s])\n", topic.ID, quote(topic.Label))
		if topic.Internal {
			internal += "," + topic.ID
		}
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&arrows, "  %s --> %s\n", e.From, e.To)
	}
	if internal != "" {
		fmt.Fprintf(&arrows, "  classDef internal stroke-dasharray: 5\n  class %s internal\n", internal[1:])
	}
	return b.String() + arrows.String()
}
