package topics

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Values of Kafka's cleanup.policy.
const (
	Compact = "compact"
	Delete  = "delete"
)

// names of Kafka's topic settings that are set or read here.
const (
	cleanupPolicy   = "cleanup.policy"
	deleteRetention = "delete.retention.ms"
	minInsync       = "min.insync.replicas"
	retention       = "retention.ms"
	maxMessage      = "max.message.bytes"
)

// Spec is an internal topic as the application needs it.
type Spec struct {
	Name        string
	Purpose     string // what it is for, as an error message says it, e.g. "changelog of store counts"
	Partitions  int32
	Cleanup     string            // Compact or Delete; a topic with another policy is refused
	Replication int16             // used at creation; 0 or less: the broker's default
	Config      map[string]string // further settings, used at creation
}

// Durability holds the settings for topics that are created here.
type Durability struct {
	Replication int16 // copies of each partition; 0 or less: the broker's default
	MinInsync   int   // copies that must hold a record before it is acknowledged; 0: the broker's default
}

func (d Durability) config(more map[string]string) map[string]string {
	config := maps.Clone(more)
	if config == nil {
		config = map[string]string{}
	}
	if d.MinInsync > 0 {
		config[minInsync] = strconv.Itoa(d.MinInsync)
	}
	return config
}

// Changelog is the topic with every change of a store, one partition per task. Kafka keeps the last value of each key.
func Changelog(name, store string, tasks int32, d Durability) Spec {
	return Spec{
		Name: name, Purpose: "changelog of store " + store, Partitions: tasks, Cleanup: Compact,
		Replication: d.Replication, Config: d.config(nil),
	}
}

// Repartition is the topic through which records reach the task of their new key. Records stay until they are
// purged after having been processed: no age removes them.
func Repartition(name string, tasks int32, d Durability) Spec {
	return Spec{
		Name: name, Purpose: "repartition topic", Partitions: tasks, Cleanup: Delete,
		Replication: d.Replication, Config: d.config(map[string]string{retention: "-1"}),
	}
}

// createCommand is what the user can run to create the topic.
func (s Spec) createCommand() string {
	var b strings.Builder
	b.WriteString("kafka-topics --create --topic " + s.Name + " --partitions " + strconv.Itoa(int(s.Partitions)))
	if s.Replication > 0 {
		b.WriteString(" --replication-factor " + strconv.Itoa(int(s.Replication)))
	}
	config := s.settings()
	for _, key := range slices.Sorted(maps.Keys(config)) {
		b.WriteString(" --config " + key + "=" + config[key])
	}
	return b.String()
}

// settings is the topic's configuration at creation.
func (s Spec) settings() map[string]string {
	config := map[string]string{cleanupPolicy: s.Cleanup}
	maps.Copy(config, s.Config)
	return config
}

// request is the topic as the broker's CreateTopics takes it.
func (s Spec) request() kmsg.CreateTopicsRequestTopic {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic = s.Name
	topic.NumPartitions = s.Partitions
	topic.ReplicationFactor = s.Replication
	if s.Replication <= 0 {
		topic.ReplicationFactor = -1 // the broker's default
	}
	config := s.settings()
	for _, key := range slices.Sorted(maps.Keys(config)) {
		setting := kmsg.NewCreateTopicsRequestTopicConfig()
		setting.Name = key
		setting.Value = kmsg.StringPtr(config[key])
		topic.Configs = append(topic.Configs, setting)
	}
	return topic
}

// Info is a topic as it is on the broker.
type Info struct {
	Name        string
	ID          [16]byte // changes when the topic is deleted and created again
	Partitions  int32
	Replication int // copies of partition 0

	authorized int32 // bits of what this client may do

	// The rest is known of internal topics only, see Ensure.
	Cleanup         string        // cleanup.policy
	DeleteRetention time.Duration // delete.retention.ms: tombstones older than this may be gone
	Retention       string        // retention.ms, "-1": no age limit; counts where Cleanup has Delete
	MinInsync       int           // min.insync.replicas
}
