package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/kafka"
)

// brokers are those of STREAMWORKER_TEST_BROKERS, else one in this process.
func brokers(t *testing.T) []string {
	t.Helper()
	if brokers := os.Getenv("STREAMWORKER_TEST_BROKERS"); brokers != "" {
		return strings.Split(brokers, ",")
	}
	return fake(t).ListenAddrs()
}

func fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

func client(t *testing.T, c kafka.Connection) *kgo.Client {
	t.Helper()
	return clientOf(t, kafka.NewConnector(c, discard))
}

var discard = slog.New(slog.DiscardHandler)

func clientOf(t *testing.T, c *kafka.Connector) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(c.Options(nil)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func TestReachWithWrongCredentials(t *testing.T) {
	cluster := fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "app"))
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := kreq.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
	cl := client(t, kafka.Connection{Brokers: cluster.ListenAddrs(), SASL: kafka.SASL{Mechanism: kafka.Plain, Username: "app", Password: "wrong"}})
	// A wait of an hour: it must not wait for what only the user can change.
	err := kafka.Reach(t.Context(), cl, time.Hour)
	if !errors.Is(err, kafka.ErrUnreachable) || !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("want both the kind and the cause, got %v", err)
	}
}

func TestReach(t *testing.T) {
	if err := kafka.Reach(t.Context(), client(t, kafka.Connection{Brokers: brokers(t)}), time.Minute); err != nil {
		t.Error(err)
	}

	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := nobody.Addr().String()
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	cl := client(t, kafka.Connection{Brokers: []string{address}})
	err = kafka.Reach(t.Context(), cl, 500*time.Millisecond)
	if !errors.Is(err, kafka.ErrUnreachable) || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("want an error that names %s and the cause, got %v", address, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := kafka.Reach(ctx, cl, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestSettled(t *testing.T) {
	answers := []error{kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.GroupIDNotFound, nil}
	asked := 0
	err := kafka.Settled(t.Context(), func() error { asked++; return answers[asked-1] })
	if !errors.Is(err, kerr.GroupIDNotFound) || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := kafka.Settled(ctx, func() error { return kerr.NotCoordinator }); !errors.Is(err, kerr.NotCoordinator) {
		t.Errorf("after the end: %v", err)
	}
}

// TestPersist repeats a step while brokers are missing, and nothing else.
func TestPersist(t *testing.T) {
	cl := client(t, kafka.Connection{Brokers: []string{"127.0.0.1:1"}})
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		name  string
		wait  time.Duration
		steps []error // what the step returns, one after the other; the last one again and again
		tries int
		want  error
	}{
		{"at once", time.Hour, []error{nil}, 1, nil},
		{"a broker is away, then another does not lead", time.Hour, []error{refused, fmt.Errorf("asking: %w", kerr.NotLeaderForPartition), nil}, 3, nil},
		{"a connection that broke", time.Hour, []error{io.ErrUnexpectedEOF, nil}, 2, nil},
		{"no brokers for too long", 0, []error{refused}, 1, kafka.ErrUnreachable},
		{"a broker that has not heard of a new topic", time.Hour, []error{kerr.UnknownTopicOrPartition, nil}, 2, nil},
		{"no right", time.Hour, []error{kerr.TopicAuthorizationFailed}, 1, kerr.TopicAuthorizationFailed},
		{"wrong credentials", time.Hour, []error{kerr.SaslAuthenticationFailed}, 1, kerr.SaslAuthenticationFailed},
		{"something else", time.Hour, []error{os.ErrInvalid}, 1, os.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			tries := 0
			err := kafka.Persist(t.Context(), cl, c.wait, discard, func() error {
				tries++
				return c.steps[min(tries, len(c.steps))-1]
			})
			if !errors.Is(err, c.want) || tries != c.tries {
				t.Errorf("%v after %d tries; want %v after %d", err, tries, c.want, c.tries)
			}
		})
	}
	stopped, stop := context.WithCancel(t.Context())
	err := kafka.Persist(stopped, cl, time.Hour, discard, func() error { stop(); return refused })
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it must end with its context, got %v", err)
	}
}
