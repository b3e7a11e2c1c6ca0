package group

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Coordinator sends requests to the group's coordinator. It is safe for concurrent use.
//
// It finds the coordinator and the topics' ids itself and sends each request to that one broker, once:
// kgo's Client.Request re-sends a request after a broken connection and after NOT_COORDINATOR or
// COORDINATOR_NOT_AVAILABLE. For an offset commit both are harmful. The first sending may still be on its
// way when the second is answered, and arrive after a later commit; and these two answers do not say that
// nothing was written (see verdict).
type Coordinator struct {
	group  string
	client *kgo.Client

	mu struct {
		sync.Mutex
		node   int32 // of the coordinator; -1: to be found
		topics map[string][16]byte
	}
}

// NewCoordinator returns a client of the group's coordinator. The options say how to reach Kafka (brokers,
// TLS, SASL, client id). Close it after use.
func NewCoordinator(group string, opts ...kgo.Opt) (*Coordinator, error) {
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.DisableClientMetrics()}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("client for the coordinator of group %s: %w", group, err)
	}
	c := &Coordinator{group: group, client: client}
	c.mu.node = -1
	c.mu.topics = make(map[string][16]byte)
	return c, nil
}

// Close closes the connections; requests under way fail.
func (c *Coordinator) Close() { c.client.Close() }

// notSent marks an error that came before a request was written.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// send sends the request to the coordinator, once. An error that is notSent says that the coordinator
// cannot have seen the request.
func (c *Coordinator) send(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	node, err := c.find(ctx)
	if err != nil {
		return nil, notSent{fmt.Errorf("find the coordinator of group %s: %w", c.group, err)}
	}
	resp, err := c.client.Broker(int(node)).Request(ctx, req)
	if err != nil {
		c.forget(node)
		if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
			err = notSent{err}
		}
		return nil, fmt.Errorf("coordinator of group %s (broker %d): %w", c.group, node, err)
	}
	return resp, nil
}

// moved notes an answer that says that the broker is not, or not now, the coordinator.
func (c *Coordinator) moved(code int16) {
	err := kerr.ErrorForCode(code)
	if errors.Is(err, kerr.NotCoordinator) || errors.Is(err, kerr.CoordinatorNotAvailable) {
		c.mu.Lock()
		c.mu.node = -1
		c.mu.Unlock()
	}
}

func (c *Coordinator) forget(node int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.node == node {
		c.mu.node = -1
	}
}

func (c *Coordinator) find(ctx context.Context) (int32, error) {
	c.mu.Lock()
	node := c.mu.node
	c.mu.Unlock()
	if node >= 0 {
		return node, nil
	}
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKeys = []string{c.group}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return 0, err
	}
	if len(resp.Coordinators) != 1 {
		return 0, fmt.Errorf("%d coordinators in the answer", len(resp.Coordinators))
	}
	found := resp.Coordinators[0]
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.node = found.NodeID
	return found.NodeID, nil
}

// topicIDs returns the ids of topics: newer requests name topics by id. An id is asked for once: a topic
// that is deleted and made anew is another topic, and its offsets must not be mixed with the old one's.
// Brokers without topic ids give zeros and are asked by name.
func (c *Coordinator) topicIDs(ctx context.Context, names map[string]bool) (map[string][16]byte, error) {
	ids := make(map[string][16]byte, len(names))
	req := kmsg.NewPtrMetadataRequest()
	c.mu.Lock()
	for name := range names {
		if id, ok := c.mu.topics[name]; ok {
			ids[name] = id
		} else {
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = kmsg.StringPtr(name)
			req.Topics = append(req.Topics, t)
		}
	}
	c.mu.Unlock()
	if len(req.Topics) == 0 {
		return ids, nil
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, fmt.Errorf("ids of the topics: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.LeaderNotAvailable) {
			return nil, fmt.Errorf("id of topic %s: %w", *t.Topic, err)
		}
		c.mu.topics[*t.Topic], ids[*t.Topic] = t.TopicID, t.TopicID
	}
	return ids, nil
}

// Leave removes members from the group. Those that are not in it any more are no error.
func (c *Coordinator) Leave(ctx context.Context, reason string, memberIDs ...string) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = c.group
	for _, id := range memberIDs {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID, m.Reason = id, kmsg.StringPtr(reason)
		req.Members = append(req.Members, m)
	}
	resp, err := c.send(ctx, req)
	if err != nil {
		return err
	}
	left := resp.(*kmsg.LeaveGroupResponse)
	c.moved(left.ErrorCode)
	codes := []int16{left.ErrorCode}
	for _, m := range left.Members {
		codes = append(codes, m.ErrorCode)
	}
	for _, code := range codes {
		if err := kerr.ErrorForCode(code); err != nil && !errors.Is(err, kerr.UnknownMemberID) {
			return fmt.Errorf("leave group %s: %w", c.group, err)
		}
	}
	return nil
}

// heartbeat says to the coordinator that the member lives. The answer proves that it still is in the group
// if it is nil or kerr.RebalanceInProgress.
func (c *Coordinator) heartbeat(ctx context.Context, memberID string, generation int32) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = c.group, memberID, generation
	resp, err := c.send(ctx, req)
	if err != nil {
		return err
	}
	code := resp.(*kmsg.HeartbeatResponse).ErrorCode
	c.moved(code)
	return kerr.ErrorForCode(code)
}
