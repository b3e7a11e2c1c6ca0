// Package assign decides which member of the group does what with which task.
//
// It is pure: the same reports give the same plan, whatever the order of members. It reads no clock,
// draws no random number and keeps nothing between calls, so that any member can lead the next round.
package assign
