// Package registry asks a schema registry that speaks Confluent's REST API, and remembers what it answered.
//
// What has an id never changes, so it is asked for once in the life of a Client. A registry that does not answer, or answers
// something else than that there is no such schema, is not asked again for a pause that grows: whoever asks meanwhile gets the
// last error at once, as a *format.Unavailable.
package registry
