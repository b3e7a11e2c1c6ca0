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
