package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

//go:generate go test -run TestReference -update

// known are the keys outside of streams and tables, as reading an empty file asks for them.
func known() []*yamlnode.Field {
	f := yamlnode.Parse("", []byte("app: <app>"), nil)
	r := newReader(f, "", Overrides{})
	r.read(f.Root().Map())
	return slices.DeleteFunc(slices.Clone(f.Fields()), func(f *yamlnode.Field) bool {
		return len(f.Kinds) == 0 || isTopology(f.Path)
	})
}

// Reference is a table in Markdown of the keys of one mapping of the file, "" for the top level, with their types and
// defaults as the code reads them.
func Reference(of string) string {
	var b strings.Builder
	b.WriteString("| key | type | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range known() {
		if parentOf(f.Path) == of {
			d := descriptions[f.Path]
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Path[strings.LastIndexByte(f.Path, '.')+1:], kindOf(f, d), defaultOf(f, d), d.Meaning)
		}
	}
	return b.String()
}

func parentOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }

func kindOf(f *yamlnode.Field, d description) string {
	switch {
	case d.Kind != "":
		return d.Kind
	case f.Is(yamlnode.Choice):
		return "`" + strings.Join(f.Choices, "`, `") + "`"
	case f.Least != nil:
		text := fmt.Sprintf("%v to %v", f.Least, f.Most)
		if f.Most == int64(math.MaxInt32) || f.Most == int64(math.MaxInt64) {
			text = fmt.Sprintf("%v or more", f.Least)
		}
		if f.Is(yamlnode.Rate) {
			text = "rate, " + text
		}
		return text
	}
	return string(f.Kinds[0])
}

func defaultOf(f *yamlnode.Field, d description) string {
	if d.Default != "" {
		return d.Default
	}
	return fmt.Sprintf("`%v`", f.Default)
}
