package group

import "errors"

var (
	// ErrForeign is returned when user data was not written by streamworker.
	ErrForeign = errors.New("user data is not streamworker's")

	// ErrVersion is returned when user data has a version that this build cannot read. Upgrade the older
	// instances of the group first.
	ErrVersion = errors.New("user data has another version")

	// ErrCorrupt is returned when user data is truncated or malformed.
	ErrCorrupt = errors.New("user data is corrupt")

	// ErrExpelled is passed to Handler.Lost when the group has removed the member.
	ErrExpelled = errors.New("the group has removed this member")

	// ErrSessionOver is passed to Handler.Lost when, by our own clock, the group may have removed the
	// member: the coordinator has not answered in time.
	ErrSessionOver = errors.New("no answer from the group coordinator in time")

	// ErrUnreadablePlan is passed to Handler.Lost when the leader's plan cannot be read.
	ErrUnreadablePlan = errors.New("the leader's plan cannot be read")

	// ErrNotAdmitted is returned by Run when the group refuses the member for a reason that retrying does
	// not cure: rights, settings, or other consumers in the group.
	ErrNotAdmitted = errors.New("the group does not admit this instance")

	// ErrRefused is returned for an offset commit that was certainly not written.
	ErrRefused = errors.New("offset commit refused")

	// ErrUnanswered is returned for an offset commit that may or may not have been written, now or later.
	ErrUnanswered = errors.New("offset commit without a verdict")

	// ErrUnstable is the error of a committed offset that a transaction is about to change. Ask again.
	ErrUnstable = errors.New("committed offset is about to change")
)
