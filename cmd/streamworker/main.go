package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
)

// version is set by the linker; without it the module's version from the build counts.
var version string

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	os.Exit(execute(os.Args[1:], &env{
		out: os.Stdout, errOut: os.Stderr, terminal: isatty.IsTerminal(os.Stdout.Fd()),
		in: os.Stdin, asks: isatty.IsTerminal(os.Stdin.Fd()),
		lookup: os.LookupEnv, environ: os.Environ, signals: signals, exit: os.Exit, patience: 15 * time.Second,
		serviceAccount: serviceAccountDir,
	}))
}
