package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TopicName is the name of an application's control topic.
func TopicName(app string) string { return app + "-control" }

// Opts are the options that the client of a Bus needs.
func Opts() []kgo.Opt {
	return []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		// Records that are produced together go in one batch: a synchronous produce does not wait for the linger.
		kgo.ProducerLinger(20 * time.Millisecond),
		// The last word of each instance counts, so one more of the same does no harm; but who ends must not wait for brokers
		// that are gone, as the client else does for what is on its way.
		kgo.AllowIdempotentProduceCancellation(),
		kgo.MetadataMinAge(100 * time.Millisecond), // the topic may have been created a moment ago
	}
}

// topicConfigs: compaction keeps the last word of each instance, deletion forgets instances that are gone
// for good. Small segments keep what a command has to read small. Broker time, so that ages are not off
// by the writers' clocks.
var topicConfigs = map[string]string{
	"cleanup.policy":            "compact,delete",
	"retention.ms":              "604800000",
	"segment.ms":                "600000",
	"segment.bytes":             "16777216",
	"min.cleanable.dirty.ratio": "0.1",
	"message.timestamp.type":    "LogAppendTime",
}

// EnsureTopic creates the control topic if it is missing and checks it otherwise. A replication of zero or
// less is the broker's default. It returns when the topic can be used.
func (b *Bus) EnsureTopic(ctx context.Context, replication int16) error {
	if replication <= 0 {
		replication = -1
	}
	adm := kadm.NewClient(b.cl)
	details, err := b.describe(ctx)
	if errors.Is(err, ErrNoTopic) {
		if err := b.create(ctx, adm, replication); err != nil {
			return err
		}
		details, err = b.awaitTopic(ctx)
	}
	if err != nil {
		return err
	}
	return b.check(ctx, adm, details, replication)
}

// CheckTopic is EnsureTopic for users who create the topic themselves.
func (b *Bus) CheckTopic(ctx context.Context) error {
	details, err := b.describe(ctx)
	if errors.Is(err, ErrNoTopic) {
		return fmt.Errorf("topic %s: %w; create it: %s", b.topic, ErrNoTopic, createCommand(b.topic, 0))
	}
	if err != nil {
		return err
	}
	return b.check(ctx, kadm.NewClient(b.cl), details, 0)
}

func (b *Bus) check(ctx context.Context, adm *kadm.Client, d kadm.TopicDetail, replication int16) error {
	if n := len(d.Partitions); n < int(partitions) {
		return fmt.Errorf("topic %s has %d partitions, not %d: delete it, then create it: %s: %w",
			b.topic, n, partitions, createCommand(b.topic, replication), ErrUnfitTopic)
	}
	return b.checkPolicy(ctx, adm)
}

// create is fine with somebody else having created the topic just now.
func (b *Bus) create(ctx context.Context, adm *kadm.Client, replication int16) error {
	configs := make(map[string]*string, len(topicConfigs))
	for k, v := range topicConfigs {
		configs[k] = &v
	}
	_, err := adm.CreateTopic(ctx, partitions, replication, configs, b.topic)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w; grant this client's principal the ACL operation CREATE on it, e.g. with kafka-acls, or create it by hand: %s",
			b.topic, err, createCommand(b.topic, replication))
	}
	return nil
}

// checkPolicy refuses a topic that forgets marks and statuses by age or size only. Who may not read the
// configuration is believed.
func (b *Bus) checkPolicy(ctx context.Context, adm *kadm.Client) error {
	configs, err := adm.DescribeTopicConfigs(ctx, b.topic)
	if err != nil || len(configs) != 1 || configs[0].Err != nil {
		b.log.Debug("the control topic's configuration cannot be read: taken as right", "topic", b.topic)
		return nil
	}
	for _, c := range configs[0].Configs {
		if c.Key == "cleanup.policy" && !strings.Contains(c.MaybeValue(), "compact") {
			return fmt.Errorf("topic %s has cleanup.policy=%s, not compact: kafka-configs --alter --entity-type topics --entity-name %s --add-config cleanup.policy=[compact,delete]: %w",
				b.topic, c.MaybeValue(), b.topic, ErrUnfitTopic)
		}
	}
	return nil
}

// awaitTopic waits until every partition of a new topic has a leader.
func (b *Bus) awaitTopic(ctx context.Context) (kadm.TopicDetail, error) {
	for {
		d, err := b.describe(ctx)
		if err == nil || !errors.Is(err, ErrNoTopic) && !kerr.IsRetriable(errors.Unwrap(err)) {
			return d, err
		}
		if sleep(ctx, 50*time.Millisecond) != nil {
			return d, fmt.Errorf("wait for topic %s: %w", b.topic, err)
		}
	}
}

// describe asks for the topic; it fails while one of its partitions has no leader.
func (b *Bus) describe(ctx context.Context) (kadm.TopicDetail, error) {
	topics, err := kadm.NewClient(b.cl).ListTopics(ctx, b.topic)
	if err != nil {
		return kadm.TopicDetail{}, fmt.Errorf("ask Kafka for topic %s: %w", b.topic, err)
	}
	d := topics[b.topic]
	switch {
	case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return d, fmt.Errorf("topic %s: %w: no instance of this application has run against this Kafka", b.topic, ErrNoTopic)
	case d.Err != nil:
		return d, fmt.Errorf("ask Kafka for topic %s: %w", b.topic, d.Err)
	}
	for _, p := range d.Partitions {
		if p.Leader < 0 {
			return d, fmt.Errorf("partition %d of topic %s has no leader: %w", p.Partition, b.topic, kerr.LeaderNotAvailable)
		}
	}
	return d, nil
}

func createCommand(topic string, replication int16) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kafka-topics --create --topic %s --partitions %d", topic, partitions)
	if replication > 0 {
		fmt.Fprintf(&b, " --replication-factor %d", replication)
	}
	b.WriteString(" --config cleanup.policy=compact,delete --config message.timestamp.type=LogAppendTime")
	return b.String()
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
