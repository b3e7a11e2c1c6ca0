// Package deploy has the tests of the files beside it: what they start, stop and name is what the product has. Linters that
// need much else are in the module check.
package deploy
