// Package control is the application's control topic, <app>-control: how operators and instances speak
// with nothing between them but Kafka. Kafka's access rights on the topic are the access control.
//
// Partition 0 has leave marks and hellos, tailed by every instance, and the definitions of stores, read at the start.
// Partition 1 has the status of each instance, read by commands, and by instances at their start. Keys are "<kind>/<instance>",
// of stores "store/<name>", so that compaction keeps the last record of each kind per instance or store; what nobody wrote anew for a
// week is deleted.
//
// Nothing in the topic is needed by an application that stays as it is: a mark that is lost can be set again, a status that is wrong
// misleads only its reader, and a definition that is lost is written again. So garbage is skipped with a log line. Readers go by position, not by the last
// record they got, and every read of a command ends where the partition ended when the read began.
//
// A mark, like its removal, names the incarnation that it is for. A restart under the same instance id is
// another incarnation, and does not leave again.
package control
