package scenario

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Comparison is one scenario under several modes.
type Comparison struct {
	Modes   []Learners
	Results map[Learners]Result
}

// Compare runs the scenario under each mode.
func Compare(s *Scenario, modes ...Learners) (Comparison, error) {
	c := Comparison{Modes: modes, Results: make(map[Learners]Result)}
	for _, mode := range modes {
		r, err := s.With(mode).Run()
		if err != nil {
			return Comparison{}, err
		}
		c.Results[mode] = r
	}
	return c, nil
}

// WriteJSON writes one JSON object with the result of each mode under its name.
func (c Comparison) WriteJSON(w io.Writer) error { return writeJSON(w, c.Results) }

// WriteText writes the results side by side: blocks of the same number next to each other, what each mode
// cost at the end.
func (c Comparison) WriteText(w io.Writer) error {
	columns := make([][][]string, len(c.Modes)) // per mode: blocks of lines
	blocks, width := 0, 0
	for i, mode := range c.Modes {
		columns[i] = append([][]string{{strings.ToUpper(string(mode))}}, c.Results[mode].blocks()...)
		blocks = max(blocks, len(columns[i]))
	}
	for i, mode := range c.Modes {
		padding := make([][]string, blocks-len(columns[i]))
		columns[i] = append(append(columns[i], padding...), c.Results[mode].summary())
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
