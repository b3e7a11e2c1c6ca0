package draw

import (
	"fmt"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology"
)

// firsts are the first steps of each stream: they bear its name.
func firsts(steps []topology.GraphNode) map[string]bool {
	named, first := make(map[string]bool), make(map[string]bool)
	for _, one := range steps {
		first[one.ID] = one.Stream != "" && !named[one.Stream]
		named[one.Stream] = true
	}
	return first
}

// DOT draws a topology in Graphviz's language.
func DOT(app string, g topology.Graph) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	var b, arrows strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", quote(app))
	for _, s := range g.Subtopologies {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=\"subtopology %d\";\n", s.ID, s.ID)
		first := firsts(s.Steps)
		for _, one := range s.Steps {
			label := quote(one.Label)
			if first[one.ID] {
				label = `"` + one.Stream + `\n` + label[1:]
			}
			fmt.Fprintf(&b, "    %s [label=%s];\n", one.ID, label)
			for i, store := range one.Stores {
				fmt.Fprintf(&b, "    %s_store%d [shape=cylinder, label=%s, tooltip=%s];\n", one.ID, i, quote(store.Name), quote("changelog: "+store.Changelog))
				fmt.Fprintf(&arrows, "  %s -> %s_store%d [style=dotted, dir=none];\n", one.ID, one.ID, i)
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
		first := firsts(s.Steps)
		for _, one := range s.Steps {
			label := quote(one.Label)
			if first[one.ID] {
				label = `"` + one.Stream + `<br/>` + label[1:]
			}
			fmt.Fprintf(&b, "    %s[%s]\n", one.ID, label)
			for i, store := range one.Stores {
				fmt.Fprintf(&b, "    %s_store%d[(%s)]\n", one.ID, i, quote(store.Name))
				fmt.Fprintf(&arrows, "  %s -.- %s_store%d\n", one.ID, one.ID, i)
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
