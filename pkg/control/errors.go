package control

import "errors"

var (
	// ErrNoTopic is returned when the control topic does not exist: no instance of the application has run
	// against this Kafka.
	ErrNoTopic = errors.New("the control topic does not exist")
	// ErrUnfitTopic is returned by EnsureTopic when the topic is there but cannot serve.
	ErrUnfitTopic = errors.New("the control topic cannot be used")

	// errGone means that the reader's position is no longer in the log, or the topic is another one.
	errGone = errors.New("the position is not in the log")
)
