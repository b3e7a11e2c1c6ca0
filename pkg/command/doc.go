// Package command has the commands of a binary that runs a topology: those of streamworker, which reads it from a
// configuration file, and of programs that say in Go what to compute.
//
// Each command has a file of its name. What several use:
//
//   - main.go: what a binary is; root.go: the tree of commands, and env, what a command has around it; exit.go: exit codes
//   - wire.go: the parts of a running instance, put together; supervise.go, systemd.go, signals.go: what ends it, and who is told
//   - place.go: where a command looks, at this host's instance or at Kafka; peers.go: which instances can be asked
//   - progress.go, view.go, queryview.go, resetview.go: what people see
package command
