// Package config reads the configuration file of an application: every setting with its default, and the topology
// of its streams.
//
// All mistakes are found in one pass and carry file, line, column and remedy. Values may refer to the environment
// as ${NAME} or ${NAME:-default}; expressions of streams may not. Flags outrank the file.
package config
