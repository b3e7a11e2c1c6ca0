// Package advise says how many instances the present load of an application needs, and why.
//
// It is pure: statuses of the instances in, an advice out. It reckons with what instances have measured: what a record costs in time of
// a thread, what arrives, and how far behind they are.
package advise
