package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Partitions of the control topic.
const (
	ordersPartition int32 = 0 // marks, hellos and stores
	statusPartition int32 = 1
	partitions      int32 = 2
)

// version is written into every value; a record of a later one is skipped.
const version = 1

// Kinds of records: the part of the key before the slash.
const (
	kindMark   = "mark"
	kindHello  = "hello"
	kindStatus = "status"
	kindStore  = "store" // then the store's name follows, not an instance's
)

// incarnationHeader names the run that a removed mark was for; a tombstone has no value to say it in.
const incarnationHeader = "incarnation"

// NoDeadline in Mark.DeadlineMs lets the leave take as long as it needs.
const NoDeadline = -1

// Mark asks one run of an instance to leave.
type Mark struct {
	Version     int                `json:"v"`
	Instance    string             `json:"instance"`
	Incarnation assign.Incarnation `json:"incarnation"`
	DeadlineMs  int64              `json:"deadline_ms"`    // ms since the epoch; 0: the instance's own scale_down_timeout; NoDeadline
	Now         bool               `json:"now"`            // give everything up at once
	By          string             `json:"by"`             // who asked
	AtMs        int64              `json:"at_ms"`          // when, ms since the epoch
	Swap        string             `json:"swap,omitempty"` // the swap that it is part of; empty: none
}

// Hello says that a run of an instance is about to join the group.
type Hello struct {
	Version     int                `json:"v"`
	Instance    string             `json:"instance"`
	Incarnation assign.Incarnation `json:"incarnation"`
	AtMs        int64              `json:"at_ms"` // ms since the epoch
}

// Store says under which definition the changelog of a store is written.
type Store struct {
	Version    int    `json:"v"`
	Name       string `json:"store"`
	Changelog  string `json:"changelog"` // topic
	TopicID    string `json:"topic_id"`  // of the changelog, in hexadecimal: a topic that was made anew has another one
	Definition string `json:"definition"`
	By         string `json:"by"`    // instance id
	AtMs       int64  `json:"at_ms"` // when it was written last, ms since the epoch
}

var errNewer = errors.New("written by a newer version of streamworker")

func key(kind, instance string) []byte { return []byte(kind + "/" + instance) }

func splitKey(k []byte) (kind, instance string, err error) {
	kind, instance, ok := strings.Cut(string(k), "/")
	if !ok || instance == "" {
		return "", "", fmt.Errorf("key %.40q: want <kind>/<instance>", k)
	}
	return kind, instance, nil
}

func encode(topic string, partition int32, kind, instance string, value any) (*kgo.Record, error) {
	if instance == "" {
		return nil, fmt.Errorf("a %s needs a name", kind)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode the %s of %s: %w", kind, instance, err)
	}
	return &kgo.Record{Topic: topic, Partition: partition, Key: key(kind, instance), Value: data}, nil
}

func tombstone(topic, instance string, inc assign.Incarnation) *kgo.Record {
	return &kgo.Record{
		Topic: topic, Partition: ordersPartition, Key: key(kindMark, instance),
		Headers: []kgo.RecordHeader{{Key: incarnationHeader, Value: []byte(inc.String())}},
	}
}

// tombstoneFor is the run whose mark a tombstone removes; ok is false when it does not say so readably.
func tombstoneFor(r *kgo.Record) (inc assign.Incarnation, ok bool) {
	for _, h := range r.Headers {
		if h.Key == incarnationHeader {
			return inc, inc.UnmarshalText(h.Value) == nil
		}
	}
	return inc, false
}

// decode reads a value and checks what all kinds have in common: the version, and that key and value
// speak of the same instance or store.
func decode[T any](r *kgo.Record, instance string, head func(*T) (version int, instance string)) (T, error) {
	var v T
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return v, err
	}
	got, of := head(&v)
	switch {
	case got > version:
		return v, errNewer
	case got != version:
		return v, fmt.Errorf("version %d", got)
	case of != instance:
		return v, fmt.Errorf("the key says %.40q, the value %.40q", instance, of)
	}
	return v, nil
}

func decodeMark(r *kgo.Record, instance string) (Mark, error) {
	m, err := decode(r, instance, func(m *Mark) (int, string) { return m.Version, m.Instance })
	if err == nil && m.DeadlineMs < NoDeadline {
		err = fmt.Errorf("deadline_ms %d", m.DeadlineMs)
	}
	return m, err
}

func decodeHello(r *kgo.Record, instance string) (Hello, error) {
	return decode(r, instance, func(h *Hello) (int, string) { return h.Version, h.Instance })
}

func decodeStatus(r *kgo.Record, instance string) (Status, error) {
	s, err := decode(r, instance, func(s *Status) (int, string) { return s.Version, s.Instance })
	s.Seen = r.Timestamp
	return s, err
}

func decodeStore(r *kgo.Record, name string) (Store, error) {
	return decode(r, name, func(s *Store) (int, string) { return s.Version, s.Name })
}
