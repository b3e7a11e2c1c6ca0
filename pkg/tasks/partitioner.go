package tasks

import "github.com/twmb/franz-go/pkg/kgo"

// Partitioner sends a record to the partition that it names, or, if that is -1, where Kafka's default
// partitioner sends its key (murmur2; without a key, sticky); if it is -2-n, where it sends the first n bytes
// of the key. The producer of a Manager must use it.
func Partitioner() kgo.Partitioner {
	return partitioner{byKey: kgo.StickyKeyPartitioner(nil)}
}

type partitioner struct{ byKey kgo.Partitioner }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return &topicPartitioner{byKey: p.byKey.ForTopic(topic)}
}

type topicPartitioner struct {
	byKey kgo.TopicPartitioner
	short kgo.Record // stands for one of which not all of the key counts
}

func (p *topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.byKey.RequiresConsistency(r)
}

func (p *topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	if r.Partition < -1 {
		p.short.Key = r.Key[:-2-r.Partition]
		return p.byKey.Partition(&p.short, n)
	}
	return p.byKey.Partition(r, n)
}

// OnNewBatch lets records without a key move on to another partition.
func (p *topicPartitioner) OnNewBatch() {
	if s, ok := p.byKey.(kgo.TopicPartitionerOnNewBatch); ok {
		s.OnNewBatch()
	}
}
