package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Config is what a Membership needs to know. All members of a group must have the same Subtopologies and
// Policy.
type Config struct {
	Options  []kgo.Opt // how to reach Kafka: brokers, TLS, SASL
	Group    string
	ClientID string // Kafka makes the member ids of it; at most 200 bytes

	Session          time.Duration // after which the group removes a silent member; default 15 s
	Heartbeat        time.Duration // default 1 s
	RebalanceTimeout time.Duration // how long a round waits for members to join; default 60 s

	Subtopologies []Subtopology
	Policy        assign.Policy

	// InputRacks, if set, tells which racks have replicas of a partition, in order; none: not known. It is called when this
	// member leads a round, and must return at once.
	InputRacks func(topic string, partition int32) []string

	// UpgradeFrom names the protocols, of range, roundrobin, sticky and cooperative-sticky, that are offered beside ours: the
	// group has, or is to get, plain consumers as members. Empty: the group is streamworker's alone.
	UpgradeFrom []string

	Coordinator *Coordinator // of the same group; stays open when Run ends

	// FormerMemberFile keeps the member id, so that a restart can remove its former self from the group;
	// empty: a round after a restart waits for the former member's session to end.
	FormerMemberFile string

	// JoinWaiting, if set, is called when a join of ours waits at the coordinator that the other members do well to
	// Rejoin for at once, not at their next heartbeats: our first one, when the former member is gone, and each that
	// follows a join which brought no plan, as nobody may run what that plan has told us to take. It must return at once
	// and call nothing of the Membership.
	JoinWaiting func()

	Logger *slog.Logger
}

func (c *Config) setDefaults() {
	if c.Session == 0 {
		c.Session = 15 * time.Second
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = time.Second
	}
	if c.RebalanceTimeout == 0 {
		c.RebalanceTimeout = time.Minute
	}
	if c.JoinWaiting == nil {
		c.JoinWaiting = func() {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func (c *Config) validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(c.Group == "", "no group id")
	wrong(len(c.ClientID) > 200, "client id of %d bytes: at most 200 are allowed", len(c.ClientID))
	wrong(c.Coordinator == nil, "no coordinator")
	wrong(c.Coordinator != nil && c.Coordinator.group != c.Group, "the coordinator is not that of group %s", c.Group)
	wrong(c.Heartbeat <= 0 || c.Heartbeat*2 > c.Session,
		"heartbeat %v: it must be positive and at most half of the session timeout %v", c.Heartbeat, c.Session)
	wrong(c.RebalanceTimeout <= c.Heartbeat, "rebalance timeout %v: it must be more than the heartbeat %v", c.RebalanceTimeout, c.Heartbeat)
	wrong(len(topicsOf(c.Subtopologies)) == 0, "no topics to consume")
	wrong(len(tasksOf(c.Subtopologies)) > maxTasks, "%d tasks: at most %d are supported", len(tasksOf(c.Subtopologies)), maxTasks)
	for _, name := range c.UpgradeFrom {
		wrong(plainProtocol(name) == nil, "no protocol %q to upgrade from", name)
	}
	return errors.Join(errs...)
}

// clientOptions are those of the kgo client that keeps the membership. It subscribes to the topics so that
// kgo joins, but consumes nothing, as the balancer gives it no partitions.
func (c *Config) clientOptions() []kgo.Opt {
	opts := append([]kgo.Opt{}, c.Options...)
	return append(opts,
		kgo.ClientID(c.ClientID),
		kgo.ConsumerGroup(c.Group),
		kgo.GroupProtocol(protocolType),
		kgo.ConsumeTopics(topicsOf(c.Subtopologies)...),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.DisableAutoCommit(),
		kgo.DisableClientMetrics(),
		kgo.SessionTimeout(c.Session),
		kgo.HeartbeatInterval(c.Heartbeat),
		kgo.RebalanceTimeout(c.RebalanceTimeout),
		// A broken connection must not use up the session: several tries fit into it.
		kgo.RequestTimeoutOverhead(min(max(c.Session/3, 100*time.Millisecond), 10*time.Second)),
		kgo.WithLogger(kgoLogger{c.Logger}),
	)
}

// kgoLogger passes on what kgo logs. Its information is ours for debugging: rounds are logged as plans
// arrive.
type kgoLogger struct{ logger *slog.Logger }

func (l kgoLogger) Level() kgo.LogLevel {
	if l.logger.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelWarn
}

func (l kgoLogger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	var to slog.Level
	switch level {
	case kgo.LogLevelError:
		to = slog.LevelError
	case kgo.LogLevelWarn:
		to = slog.LevelWarn
	default:
		to = slog.LevelDebug
	}
	l.logger.Log(context.Background(), to, msg, keyvals...)
}
