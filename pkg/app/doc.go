// Package app makes a binary of a topology that is written in Go, with every command that streamworker has.
//
//	func main() { app.Main(build) }
//
//	func build(b *streams.Builder) { ... }
//
// The configuration file of such a binary has everything but streams and tables.
package app
