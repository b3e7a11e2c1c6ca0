// Package admin is an instance's door for its operator: a unix socket in the state directory, for commands
// on the same host, and an optional TCP listener with metrics, health and the dashboard.
//
// Every answer comes from a snapshot, within a second, whatever the instance is busy with. Who may open the
// socket, may give orders. The TCP side is for this host only, or for those who present a token or a certificate
// (Access); it takes orders only where its API does.
package admin
