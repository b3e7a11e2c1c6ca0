package topology

import "github.com/streamworker/streamworker/pkg/topology/yamlnode"

// Program says what to compute as Go code does, in place of a file: package streams makes it. It is the text of a file's
// streams and tables, in which functions stand where expressions would.
type Program struct {
	Text []byte
	// Attached has a *Func or a *Custom for each text that stands for one.
	Attached map[string]any
	// Places tells which line of the program's source wrote a line of Text, both from 1.
	Places func(line int) (file string, at int)
}

// File reads the text. Each call gives a file of its own.
func (p *Program) File() *yamlnode.File {
	return yamlnode.ParseProgram(p.Text, p.Attached, p.Places)
}

// Parse builds the topology of an application.
func (p *Program) Parse(app string) (*Topology, error) {
	f := p.File()
	m := f.Root().Map()
	t := Definition{App: app, Tables: m.Get("tables"), Streams: m.Get("streams")}.Parse()
	m.Done()
	return t, f.Err()
}
