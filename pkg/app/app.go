// Package app makes a binary of a topology that is written in Go, with every command that streamworker has.
//
//	func main() { app.Main(build) }
//
//	func build(b *streams.Builder) { ... }
//
// The configuration file of such a binary has everything but streams and tables.
package app

import (
	"os"
	"path/filepath"

	"github.com/streamworker/streamworker/pkg/command"
	"github.com/streamworker/streamworker/pkg/streams"
)

// Main runs the command line of this process, and ends it. Build is called once.
func Main(build func(*streams.Builder)) {
	command.Main(command.Binary{Name: filepath.Base(os.Args[0]), Program: streams.Build(build)})
}
