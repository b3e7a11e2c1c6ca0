// Command streamworker runs a stateful stream-processing topology on Apache Kafka and hands its tasks over
// live. `streamworker --help` lists what it can do.
package main

import "github.com/streamworker/streamworker/pkg/command"

// version is set by the linker; without it the module's version from the build counts.
var version string

func main() { command.Main(command.Binary{Name: "streamworker", Version: version}) }
