package command

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Binary says what distinguishes one binary with these commands from another.
type Binary struct {
	Name    string // of the command
	Version string // "": that of the module it was built of
	// Program says what to compute, in place of the streams of the configuration file; nil: the file does.
	Program *topology.Program
}

// version is that of the binary.
var version string

// Main runs the command line of this process, and ends it.
func Main(b Binary) {
	version = b.Version
	signals := make(chan os.Signal, 8)
	os.Exit(execute(os.Args[1:], &env{
		name: b.Name, program: b.Program,
		out: os.Stdout, errOut: os.Stderr, terminal: isatty.IsTerminal(os.Stdout.Fd()),
		in: os.Stdin, asks: isatty.IsTerminal(os.Stdin.Fd()),
		lookup: os.LookupEnv, environ: os.Environ, signals: signals, catch: func() { signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT) }, exit: os.Exit, patience: 15 * time.Second,
		serviceAccount: serviceAccountDir,
	}))
}
