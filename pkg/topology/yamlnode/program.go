package yamlnode

// program is what a program adds to a text that it writes in place of a file.
type program struct {
	attached map[string]any
	places   func(line int) (file string, at int)
}

// ParseProgram is Parse for a text that a program has written. What is attached to a text of it takes the place of that
// text, see Node.Attached; places tells for a line of it, from 1, which line of the program's source wrote it.
func ParseProgram(src []byte, attached map[string]any, places func(line int) (file string, at int)) *File {
	f := Parse("program", src, nil)
	f.program = &program{attached: attached, places: places}
	return f
}

// Attached is what a program has put in place of the value; nil if it has not, and in files.
func (n Node) Attached() any {
	if n.f == nil || n.f.program == nil {
		return nil
	}
	text, _ := n.scalar()
	return n.f.program.attached[text]
}

// place says where in the program's source a problem is.
func (p *program) place(problem *Problem) {
	if p == nil || problem.Line == 0 {
		return
	}
	if file, line := p.places(problem.Line); file != "" {
		problem.File, problem.Line, problem.Column = file, line, 1
		problem.Snippet = ""
	}
}
