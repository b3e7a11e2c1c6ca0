// Package check has linters for the files in deploy, as tests: Helm's own, the types of the Kubernetes API, the parsers of
// BuildKit, of Compose and of Prometheus. It is a module of its own, so that the product does not depend on them.
package check
