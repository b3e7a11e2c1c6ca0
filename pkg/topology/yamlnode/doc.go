// Package yamlnode reads a YAML file field by field and remembers where everything stood.
//
// Readers ask for what they expect (a string, a duration, a list) and go on with a default when the
// file says something else; each such mistake becomes a Problem with file, line, column and remedy. So
// one pass finds all the mistakes of a file, and a field that nobody asked for is a mistake too.
package yamlnode
