// Package admin is an instance's door for its operator: a unix socket in the state directory, for commands
// on the same host, and an optional TCP listener with metrics and health.
//
// Every answer comes from a snapshot, within a second, whatever the instance is busy with. Only the socket
// takes orders; who may open it, may give them. The TCP side only shows.
package admin
