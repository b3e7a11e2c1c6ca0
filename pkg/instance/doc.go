// Package instance is one running streamworker: it puts the group membership, the task manager, the
// state engine, the leave controller and the control topic together, and starts and stops them in order.
// The command `run` wraps one Instance; tests run several in one process.
package instance
