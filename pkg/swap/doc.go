// Package swap moves an application from one pool of instances to another: it waits until the new pool has the capacity, has the
// instances of the old one marked as leaving, all at once, and follows them until they have left.
//
// It is pure: statuses and marks of the control topic in, what to do and to show out. A swap has no record of its own. Before
// the marks there is nothing but the command that waits; from then on the marks are the swap, so that it goes on without the command, and
// any machine can show it, resume it or take it back.
package swap
