// A plain consumer of IBM's sarama; see package plain.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

var strategies = map[string]sarama.BalanceStrategy{
	"range": sarama.NewBalanceStrategyRange(), "roundrobin": sarama.NewBalanceStrategyRoundRobin(), "sticky": sarama.NewBalanceStrategySticky(),
}

// copier copies what is there, and commits it before it goes on.
type copier struct {
	out      string
	producer sarama.SyncProducer
}

func (c *copier) Setup(s sarama.ConsumerGroupSession) error {
	n := 0
	for _, parts := range s.Claims() {
		n += len(parts)
	}
	fmt.Println("assigned", n, s.GenerationID())
	return nil
}

func (*copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c *copier) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-s.Context().Done():
			return nil
		case m, ok := <-claim.Messages():
			if !ok || s.Context().Err() != nil {
				return nil
			}
			batch, last := []*sarama.ProducerMessage{c.copy(m)}, m
			for more := true; more && len(batch) < 1000; {
				select {
				case m, ok := <-claim.Messages():
					if more = ok; ok {
						batch, last = append(batch, c.copy(m)), m
					}
				default:
					more = false
				}
			}
			if err := c.producer.SendMessages(batch); err != nil {
				return err
			}
			s.MarkMessage(last, "")
			s.Commit()
		}
	}
}

func (c *copier) copy(m *sarama.ConsumerMessage) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: c.out, Key: sarama.ByteEncoder(m.Key), Value: sarama.ByteEncoder(m.Value)}
}

func main() {
	brokers, group, in, out, strategy := strings.Split(os.Args[1], ","), os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Enable = false
	cfg.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[strategy]}
	cfg.Consumer.Group.Heartbeat.Interval = time.Second
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer(brokers, cfg)
	if err != nil {
		log.Fatal(err)
	}
	members, err := sarama.NewConsumerGroup(brokers, group, cfg)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	for ctx.Err() == nil {
		if err := members.Consume(ctx, []string{in}, &copier{out: out, producer: producer}); err != nil && !errors.Is(err, context.Canceled) {
			log.Fatal(err)
		}
	}
	if err := members.Close(); err != nil {
		log.Fatal(err)
	}
	if err := producer.Close(); err != nil {
		log.Fatal(err)
	}
}
