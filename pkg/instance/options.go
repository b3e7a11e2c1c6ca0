package instance

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/tasks"
)

// How long the input client's fetches wait for records. A task that was just taken waits for the fetch
// under way to end before its first records can be fetched, so this is part of the gap; each instance
// sends so many idle requests to each broker.
const inputWait = 30 * time.Millisecond

// Input bounds: what one fetch may bring, of all partitions of a broker and of one.
const (
	fetchMaxBytes          = 1 << 20
	fetchMaxPartitionBytes = 256 << 10
)

// Producer bounds: what may be on its way to the brokers.
const (
	maxBufferedRecords = 24 << 10
	maxBufferedBytes   = 32 << 20
	producerLinger     = 2 * time.Millisecond
)

// Options are what does not come from the configuration.
type Options struct {
	Logger *slog.Logger
	Events tasks.Events // called in addition to the instance's own logging
	// ReachTimeout is how long to wait for Kafka at the start; default 30 s.
	ReachTimeout time.Duration
	// Dialer replaces the way to the brokers, for tests.
	Dialer kafka.DialFunc
	// StateFS replaces the disk under the tasks' state, for tests.
	StateFS vfs.FS
	// PaceCollector lets the instance set GOGC for the whole process, by how much of the heap is rows of state.
	PaceCollector bool
}

// clients are the connections of an instance, one for each purpose, so that none waits behind another.
type clients struct {
	admin, input, changelogs, control *kgo.Client
}

func (i *Instance) kafkaOptions(purpose string, more ...kgo.Opt) []kgo.Opt {
	opts := append(i.connector.Options(i.opts.Dialer),
		kgo.ClientID(i.cfg.Kafka.ClientID+"-"+i.id+purpose),
		// After a leader has moved, look for the new one soon.
		kgo.MetadataMinAge(250*time.Millisecond),
		kgo.DisableClientMetrics(),
		kgo.WithLogger(kafkaLogger{i.log.With("component", "kafka", "client", purpose)}),
	)
	return append(opts, more...)
}

func (i *Instance) newClients() (*clients, error) {
	c := &clients{}
	for _, n := range []struct {
		to      **kgo.Client
		purpose string
		opts    []kgo.Opt
	}{
		{&c.admin, "-admin", nil},
		{&c.input, "-input", []kgo.Opt{
			kgo.Rack(i.cfg.Rack),
			kgo.FetchMaxWait(inputWait),
			kgo.FetchMaxBytes(fetchMaxBytes),
			kgo.FetchMaxPartitionBytes(fetchMaxPartitionBytes),
			kgo.WithPools(new(recordPool)),
			kgo.ConsumeResetOffset(kgo.NoResetOffset()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		}},
		{&c.changelogs, "-changelogs", nil},
		{&c.control, "-control", control.Opts()},
	} {
		cl, err := kgo.NewClient(i.kafkaOptions(n.purpose, n.opts...)...)
		if err != nil {
			c.close()
			return nil, err
		}
		*n.to = cl
	}
	return c, nil
}

func (c *clients) close() {
	for _, cl := range []*kgo.Client{c.admin, c.input, c.changelogs, c.control} {
		if cl != nil {
			cl.Close()
		}
	}
}

// instanceID is the configured id, or a new one that tells the host.
func instanceID(cfg *config.Config) string {
	if cfg.InstanceID != "" {
		return cfg.InstanceID
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "instance"
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return host + "-" + hex.EncodeToString(b[:])
}

func randomBits() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// kafkaLogger sends the Kafka client's messages to slog.
type kafkaLogger struct{ log *slog.Logger }

func (l kafkaLogger) Level() kgo.LogLevel {
	// The client's warnings tell of what it gets over by itself.
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelError
}

func (l kafkaLogger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	at := slog.LevelDebug
	if level == kgo.LogLevelError {
		at = slog.LevelWarn
	}
	l.log.Log(context.Background(), at, msg, keyvals...)
}
