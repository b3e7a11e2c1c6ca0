package topics

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	// ErrMissing is returned when a topic does not exist and is not to be created.
	ErrMissing = errors.New("topic is missing")
	// ErrMismatch is returned when a topic exists with other settings than the application needs.
	ErrMismatch = errors.New("topic does not fit")
	// ErrDenied is returned when the broker's access control refuses a request.
	ErrDenied = errors.New("not authorized")
	// ErrRefused is returned when the broker refuses to create a topic for another reason.
	ErrRefused = errors.New("topic was not created")
)

// denied says which right is missing on which resource. resource reads as in Kafka's own tools, e.g. "topic orders".
func denied(operation, resource string, cause error) error {
	return fmt.Errorf("%w to %s %s (%w): grant this client's principal the ACL operation %s on it, e.g. with kafka-acls",
		ErrDenied, operation, resource, cause, operation)
}

// isDenied tells whether err is a refusal by access control.
func isDenied(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// unanswered wraps the error of a request that got no answer.
func unanswered(cl *kgo.Client, doing string, cause error) error {
	brokers, _ := cl.OptValue(kgo.SeedBrokers).([]string)
	return fmt.Errorf("%s: no answer from Kafka at %s: %w", doing, strings.Join(brokers, ", "), cause)
}
