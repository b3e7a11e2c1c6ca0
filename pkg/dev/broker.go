package dev

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/kafka"
)

// Prefix begins the names of all topics and groups that a run makes on a real Kafka.
const Prefix = "streamworker-dev-"

// reachTimeout bounds the wait for a real Kafka at the start, cleanupTimeout what is deleted there at the end.
const (
	reachTimeout   = 10 * time.Second
	cleanupTimeout = 15 * time.Second
	cleanupPause   = 100 * time.Millisecond // between two looks at what is left
)

// broker is the Kafka of a run.
type broker struct {
	addresses []string
	connector *kafka.Connector
	fake      *kfake.Cluster // nil: a real one
	prefix    string         // of what is made on it; "" on an embedded one, which ends with the run
	created   []string       // topics, by create
	client    *kgo.Client
	admin     *kadm.Client
}

// openBroker starts an embedded broker, or connects to a real one.
func openBroker(ctx context.Context, cfg Config) (*broker, error) {
	b := &broker{addresses: cfg.Brokers}
	var way kafka.Connection
	if len(cfg.Brokers) == 0 {
		// Bounds as wide as those of the configuration file.
		fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second), kfake.GroupMaxSessionTimeout(24*time.Hour),
			kfake.BrokerConfigs(map[string]string{"transaction.max.timeout.ms": "3600000"}))
		if err != nil {
			return nil, fmt.Errorf("starting the embedded broker: %w", err)
		}
		b.fake, b.addresses = fake, fake.ListenAddrs()
		way.Brokers = b.addresses
	} else {
		var bits [4]byte
		_, _ = rand.Read(bits[:]) // never fails
		b.prefix = Prefix + hex.EncodeToString(bits[:]) + "-"
		var err error
		if way, err = cfg.connection(); err != nil {
			return nil, err
		}
	}
	b.connector = kafka.NewConnector(way, slog.New(slog.DiscardHandler))
	var err error
	if b.client, err = kgo.NewClient(b.options()...); err != nil {
		b.stop()
		return nil, fmt.Errorf("--kafka %s: %w", strings.Join(b.addresses, ","), err)
	}
	b.admin = kadm.NewClient(b.client)
	if err := kafka.Reach(ctx, b.client, reachTimeout); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// options are those of every client of the run itself.
func (b *broker) options(more ...kgo.Opt) []kgo.Opt {
	own := append(b.connector.Options(nil), kgo.ClientID("streamworker-dev"), kgo.MetadataMinAge(250*time.Millisecond), kgo.DisableClientMetrics())
	return append(own, more...)
}

// create makes topics of so many partitions.
func (b *broker) create(ctx context.Context, partitions int32, names ...string) error {
	b.created = append(b.created, names...)
	answers, err := b.admin.CreateTopics(ctx, partitions, -1, nil, names...)
	if err != nil {
		return fmt.Errorf("creating topics: %w", err)
	}
	var problems []error
	for _, a := range answers.Sorted() {
		if a.Err != nil {
			problems = append(problems, fmt.Errorf("creating topic %s: %w", a.Topic, errors.Join(a.Err, saidBy(a.ErrMessage))))
		}
	}
	return errors.Join(problems...)
}

func saidBy(message string) error {
	if message == "" {
		return nil
	}
	return errors.New(message)
}

// close deletes what was made on a real Kafka, and ends an embedded one.
func (b *broker) close(group string) error {
	defer b.stop()
	if b.fake != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	if err := b.remove(ctx, group); err != nil {
		return fmt.Errorf("cleaning up on %s: %w; delete the topics and the group that begin with %s by hand", strings.Join(b.addresses, ","), err, b.prefix)
	}
	return nil
}

// remove deletes the topics with the prefix, those of instances as well, until none is listed, and the group.
func (b *broker) remove(ctx context.Context, group string) error {
	names := b.created // which may not be listed yet
	for {
		all, err := b.admin.ListTopics(ctx)
		if err != nil {
			return err
		}
		for _, name := range all.Names() {
			if strings.HasPrefix(name, b.prefix) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			break
		}
		if err := b.removeTopics(ctx, names); err != nil {
			return err
		}
		names = nil
		select {
		case <-time.After(cleanupPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if group == "" {
		return nil
	}
	deleted, err := b.admin.DeleteGroups(ctx, group)
	if err == nil {
		err = deleted[group].Err
	}
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("group %s: %w", group, err)
	}
	return nil
}

func (b *broker) removeTopics(ctx context.Context, names []string) error {
	deleted, err := b.admin.DeleteTopics(ctx, names...)
	if err != nil {
		return err
	}
	var problems []error
	for _, d := range deleted.Sorted() {
		if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			problems = append(problems, fmt.Errorf("topic %s: %w", d.Topic, d.Err))
		}
	}
	return errors.Join(problems...)
}

func (b *broker) stop() {
	if b.client != nil {
		b.client.Close()
	}
	if b.fake != nil {
		b.fake.Close()
	}
}

// behind is how many records of the topics the group has not committed yet.
func (b *broker) behind(ctx context.Context, group string, names []string) (int64, error) {
	ends, err := b.ends(ctx, names)
	if err != nil {
		return 0, err
	}
	committed, err := b.admin.FetchOffsets(ctx, group)
	if err != nil {
		return 0, fmt.Errorf("committed offsets of group %s: %w", group, err)
	}
	var behind int64
	ends.Each(func(end kadm.ListedOffset) {
		at := int64(0)
		if o, ok := committed.Lookup(end.Topic, end.Partition); ok {
			at = max(0, o.At)
		}
		behind += max(0, end.Offset-at)
	})
	return behind, nil
}

// size is how many records the partitions hold, or held before they were compacted.
func (b *broker) size(ctx context.Context, places []place) (int64, error) {
	size := int64(0)
	for _, p := range places {
		ends, err := b.ends(ctx, []string{p.topic})
		if err != nil {
			return 0, err
		}
		end, _ := ends.Lookup(p.topic, p.partition)
		size += end.Offset
	}
	return size, nil
}

// ends are the topics' ends.
func (b *broker) ends(ctx context.Context, names []string) (kadm.ListedOffsets, error) {
	if len(names) == 0 {
		return kadm.ListedOffsets{}, nil // no names would mean all topics
	}
	ends, err := b.admin.ListEndOffsets(ctx, names...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ends of the topics %s: %w", strings.Join(names, ", "), err)
	}
	return ends, nil
}
