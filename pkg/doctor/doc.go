// Package doctor checks whether an instance could run here, and whether the application is well: this host, the way to the
// brokers, topics, rights, the group. It only looks: nothing is written, created, joined or locked.
//
// Each check gives one line or several. What a check needs of an earlier one that failed makes it Skipped. Messages of failures say
// what to do, as the errors of the other packages do. Files: host.go, brokers.go, topics.go, group.go.
package doctor
