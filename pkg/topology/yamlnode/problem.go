package yamlnode

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a file.
type Problem struct {
	File   string
	Line   int // from 1; 0 when no place in the file is to blame
	Column int // from 1, in characters
	// Message says what is wrong.
	Message string
	// Snippet is the offending text, mostly one line of an expression; empty if the message says enough.
	Snippet string
	// Caret is the index of the character in Snippet that is to blame; -1: none.
	Caret int
	// Hint says what to do; may be empty.
	Hint string
}

// Error gives one mistake as "file:line:column: message", the expression below it and the remedy last.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": " + p.Message)
	if p.Snippet != "" {
		b.WriteString("\n    | " + p.Snippet)
		if p.Caret >= 0 {
			b.WriteString("\n    | " + strings.Repeat(" ", p.Caret) + "^")
		}
	}
	if p.Hint != "" {
		b.WriteString("\n    " + p.Hint)
	}
	return b.String()
}

// Problems are all the mistakes of a file, in the order of their places.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// ordered returns the problems by place, each once.
func (p Problems) ordered() Problems {
	out := slices.Clone(p)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(out)
}
