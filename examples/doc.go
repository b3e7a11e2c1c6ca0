// Package examples tests the examples: each topology has cases beside it, which have to pass.
package examples
