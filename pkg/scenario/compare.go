package scenario

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Comparison is one scenario under several policies.
type Comparison struct {
	Scenario string // its name
	Variants []Variant
	Results  map[string]Result // by the variant's name
}

// Compare runs the scenario under each of the policies.
func Compare(s *Scenario, variants ...Variant) (Comparison, error) {
	c := Comparison{Scenario: s.Name, Variants: variants, Results: make(map[string]Result)}
	for _, v := range variants {
		r, err := s.With(v).Run()
		if err != nil {
			return Comparison{}, err
		}
		c.Results[v.Name] = r
	}
	return c, nil
}

// WriteJSON writes one JSON object with the result of each policy under its name.
func (c Comparison) WriteJSON(w io.Writer) error { return writeJSON(w, c.Results) }

// WriteText writes the results side by side: blocks of the same number next to each other, what each policy
// cost at the end.
func (c Comparison) WriteText(w io.Writer) error {
	columns := make([][][]string, len(c.Variants)) // per policy: blocks of lines
	blocks, width := 0, 0
	for i, v := range c.Variants {
		columns[i] = append([][]string{{strings.ToUpper(v.Name)}}, c.Results[v.Name].blocks()...)
		blocks = max(blocks, len(columns[i]))
	}
	for i, v := range c.Variants {
		padding := make([][]string, blocks-len(columns[i]))
		columns[i] = append(append(columns[i], padding...), c.Results[v.Name].summary())
		for _, block := range columns[i] {
			for j := range block {
				block[j] = strings.ReplaceAll(block[j], "\t", "    ")
				width = max(width, utf8.RuneCountInString(block[j]))
			}
		}
	}
	var b strings.Builder
	for n := range blocks + 1 {
		if n > 0 {
			b.WriteString("\n")
		}
		for line := range height(columns, n) {
			var row strings.Builder
			for i, column := range columns {
				if i > 0 {
					row.WriteString("  |  ")
				}
				cell := ""
				if line < len(column[n]) {
					cell = column[n][line]
				}
				row.WriteString(cell + strings.Repeat(" ", width-utf8.RuneCountInString(cell)))
			}
			b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// height is the number of lines of the highest nth block.
func height(columns [][][]string, n int) (lines int) {
	for _, column := range columns {
		lines = max(lines, len(column[n]))
	}
	return lines
}
