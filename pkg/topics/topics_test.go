package topics_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/streamworker/streamworker/pkg/topics"
)

// kafka is the broker of STREAMWORKER_TEST_BROKERS, else one in this process.
func kafka(t *testing.T) *kgo.Client {
	t.Helper()
	if brokers := os.Getenv("STREAMWORKER_TEST_BROKERS"); brokers != "" {
		return client(t, kgo.SeedBrokers(strings.Split(brokers, ",")...))
	}
	return client(t, kgo.SeedBrokers(fake(t).ListenAddrs()...))
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

func client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// named is a topic name of this test alone; the topic is deleted when the test ends.
func named(t *testing.T, cl *kgo.Client, name string) string {
	t.Helper()
	name = "topics-" + rand.Text()[:8] + "-" + name
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := kadm.NewClient(cl).DeleteTopic(ctx, name); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.Errorf("deleting topic %s: %v", name, err)
		}
	})
	return name
}

func create(t *testing.T, cl *kgo.Client, name string, partitions int32, config map[string]*string) {
	t.Helper()
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, config, name); err != nil {
		t.Fatal(err)
	}
}

func TestEnsureCreates(t *testing.T) {
	cl := kafka(t)
	durable := topics.Durability{Replication: 1, MinInsync: 1}
	changelog := topics.Changelog(named(t, cl, "counts-changelog"), "counts", 5, durable)
	repartition := topics.Repartition(named(t, cl, "words-repartition"), 3, durable)
	control := topics.Changelog(named(t, cl, "control"), "s", 2, topics.Durability{})
	specs := []topics.Spec{changelog, repartition, control}

	first, err := topics.Ensure(t.Context(), cl, specs, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range specs {
		have := first[s.Name]
		if have.Partitions != s.Partitions || have.Cleanup != s.Cleanup || have.Replication != 1 || have.ID == [16]byte{} {
			t.Errorf("%s: wanted %+v, have %+v", s.Name, s, have)
		}
		if have.DeleteRetention != 24*time.Hour {
			t.Errorf("%s: delete.retention.ms is %v, Kafka's default is a day", s.Name, have.DeleteRetention)
		}
		if have.MinInsync != 1 {
			t.Errorf("%s: min.insync.replicas is %d", s.Name, have.MinInsync)
		}
	}
	configs, err := kadm.NewClient(cl).DescribeTopicConfigs(t.Context(), repartition.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs[0].Configs {
		if c.Key == "retention.ms" && c.MaybeValue() != "-1" {
			t.Errorf("a repartition topic forgets records after %s ms", c.MaybeValue())
		}
	}

	again, err := topics.Ensure(t.Context(), cl, specs, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, info := range again {
		if info != first[name] {
			t.Errorf("%s: found %+v, created %+v", name, info, first[name])
		}
	}
}

func TestEnsureByManyAtOnce(t *testing.T) {
	cl := kafka(t)
	spec := topics.Changelog(named(t, cl, "counts-changelog"), "counts", 4, topics.Durability{Replication: 1})
	var wait sync.WaitGroup
	ids := make([][16]byte, 6)
	for i := range ids {
		wait.Go(func() {
			found, err := topics.Ensure(t.Context(), cl, []topics.Spec{spec}, true)
			if err != nil {
				t.Errorf("creator %d: %v", i, err)
			}
			ids[i] = found[spec.Name].ID
		})
	}
	wait.Wait()
	for i, id := range ids {
		if id != ids[0] || id == [16]byte{} {
			t.Errorf("creator %d got topic id %x, creator 0 %x", i, id, ids[0])
		}
	}
}

func TestEnsureReportsAllThatDoesNotFit(t *testing.T) {
	cl := kafka(t)
	compact := kadm.StringPtr("compact")
	few, deleted, absent := named(t, cl, "few"), named(t, cl, "deleted"), named(t, cl, "absent")
	both := named(t, cl, "both")
	create(t, cl, few, 3, map[string]*string{"cleanup.policy": compact})
	create(t, cl, deleted, 4, nil)
	aging := named(t, cl, "aging")
	create(t, cl, aging, 4, map[string]*string{"retention.ms": kadm.StringPtr("604800000")})
	create(t, cl, both, 4, map[string]*string{"cleanup.policy": kadm.StringPtr("compact,delete")})

	specs := []topics.Spec{
		topics.Changelog(few, "a", 4, topics.Durability{}),
		topics.Changelog(deleted, "b", 4, topics.Durability{}),
		topics.Changelog(both, "c", 4, topics.Durability{}),
		topics.Repartition(aging, 4, topics.Durability{}),
	}
	_, err := topics.Ensure(t.Context(), cl, specs, true)
	if !errors.Is(err, topics.ErrMismatch) {
		t.Fatalf("want ErrMismatch, got %v", err)
	}
	for _, want := range []string{
		few + " (changelog of store a) has 3 partitions, 4 are needed",
		deleted + " (changelog of store b) has cleanup.policy=delete, compact is needed",
		aging + " (repartition topic) has retention.ms=604800000, -1 is needed",
		"kafka-configs --alter --entity-type topics --entity-name " + aging + " --add-config retention.ms=-1",
		"kafka-configs --alter --entity-type topics --entity-name " + deleted + " --add-config cleanup.policy=compact",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if !strings.Contains(err.Error(), both+" (changelog of store c) has cleanup.policy=") {
		t.Errorf("compact,delete passed, it removes state by age:\n%v", err)
	}

	_, err = topics.Ensure(t.Context(), cl, []topics.Spec{topics.Changelog(absent, "d", 4, topics.Durability{Replication: 3, MinInsync: 2})}, false)
	if !errors.Is(err, topics.ErrMissing) {
		t.Fatalf("want ErrMissing, got %v", err)
	}
	want := "kafka-topics --create --topic " + absent + " --partitions 4 --replication-factor 3" +
		" --config cleanup.policy=compact --config min.insync.replicas=2"
	if !strings.Contains(err.Error(), want) {
		t.Errorf("the error does not say %q:\n%v", want, err)
	}
}

func TestEnsureTooFewBrokers(t *testing.T) {
	cl := kafka(t)
	spec := topics.Changelog(named(t, cl, "counts-changelog"), "counts", 1, topics.Durability{Replication: 7})
	_, err := topics.Ensure(t.Context(), cl, []topics.Spec{spec}, true)
	if !errors.Is(err, topics.ErrRefused) {
		t.Fatalf("want ErrRefused, got %v", err)
	}
	if want := "replication (7) must not exceed the number of brokers"; !strings.Contains(err.Error(), want) {
		t.Errorf("the error does not say %q:\n%v", want, err)
	}
}

func TestEnsureRetriesWhatPasses(t *testing.T) {
	cluster := fake(t)
	refusals := 0
	cluster.ControlKey(int16(kmsg.CreateTopics), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if refusals++; refusals > 2 {
			return nil, nil, false
		}
		req := kreq.(*kmsg.CreateTopicsRequest)
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic, topic.ErrorCode = req.Topics[0].Topic, kerr.ThrottlingQuotaExceeded.Code
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	cl := client(t, kgo.SeedBrokers(cluster.ListenAddrs()...))
	found, err := topics.Ensure(t.Context(), cl, []topics.Spec{topics.Changelog("control", "s", 2, topics.Durability{})}, true)
	if err != nil {
		t.Fatal(err)
	}
	if found["control"].Partitions != 2 || refusals != 3 {
		t.Errorf("found %+v after %d requests", found["control"], refusals)
	}
}

func TestDescribe(t *testing.T) {
	cl := kafka(t)
	one, two, absent := named(t, cl, "one"), named(t, cl, "two"), named(t, cl, "absent")
	create(t, cl, one, 3, nil)
	create(t, cl, two, 8, nil)

	found, err := topics.Describe(t.Context(), cl, []string{two, one})
	if err != nil {
		t.Fatal(err)
	}
	if found[one].Partitions != 3 || found[two].Partitions != 8 || found[one].ID == found[two].ID {
		t.Errorf("found %+v", found)
	}
	if found, err := topics.Describe(t.Context(), cl, nil); err != nil || len(found) != 0 {
		t.Errorf("of no topics it found %v, %v", found, err)
	}
	_, err = topics.Describe(t.Context(), cl, []string{one, absent})
	if !errors.Is(err, topics.ErrMissing) || !strings.Contains(err.Error(), absent) || strings.Contains(err.Error(), one) {
		t.Errorf("want ErrMissing for %s alone, got %v", absent, err)
	}
}

func TestMaxMessageBytes(t *testing.T) {
	cl := kafka(t)
	small, usual := named(t, cl, "small"), named(t, cl, "usual")
	most := "2000"
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(t.Context(), 1, 1, map[string]*string{"max.message.bytes": &most}, small); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.CreateTopic(t.Context(), 1, 1, nil, usual); err != nil {
		t.Fatal(err)
	}
	found, err := topics.MaxMessageBytes(t.Context(), cl, []string{usual, small, usual, "topics-nowhere"})
	if err != nil || len(found) != 2 || found[small] != 2000 || found[usual] < 1_000_000 {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestRefusedByAccessControl(t *testing.T) {
	allow := func(topic string, operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{
			Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: operation, Allow: true,
		}
	}
	cluster := fake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(4, "hidden", "shown"),
		kfake.Superuser("PLAIN", "admin", "admin"),
		kfake.User("PLAIN", "app", "app", allow("shown", kmsg.ACLOperationDescribe), allow("new", kmsg.ACLOperationDescribe)))
	login := func(user, password string) *kgo.Client {
		return client(t, kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	}
	app := login("app", "app")
	durable := topics.Durability{}

	tests := []struct {
		name string
		call func() error
		want string
	}{
		{"describe", func() error {
			_, err := topics.Describe(t.Context(), app, []string{"hidden", "shown"})
			return err
		}, "not authorized to DESCRIBE topic hidden"},
		{"ensure, describe", func() error {
			_, err := topics.Ensure(t.Context(), app, []topics.Spec{topics.Changelog("hidden", "s", 4, durable)}, true)
			return err
		}, "not authorized to DESCRIBE topic hidden"},
		{"ensure, create", func() error {
			_, err := topics.Ensure(t.Context(), app, []topics.Spec{topics.Changelog("new", "s", 4, durable)}, true)
			return err
		}, "not authorized to CREATE topic new"},
		{"ensure, settings", func() error {
			_, err := topics.Ensure(t.Context(), app, []topics.Spec{topics.Changelog("shown", "s", 4, durable)}, true)
			return err
		}, "not authorized to DESCRIBE_CONFIGS topic shown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.call()
			if !errors.Is(err, topics.ErrDenied) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
}

func TestCheckRights(t *testing.T) {
	allow := func(topic string, operations ...kmsg.ACLOperation) (acls []kfake.ACL) {
		for _, op := range operations {
			acls = append(acls, kfake.ACL{
				Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true,
			})
		}
		return acls
	}
	const read, write = kmsg.ACLOperationRead, kmsg.ACLOperationWrite
	acls := append(allow("in", read), allow("out", read)...)
	acls = append(acls, allow("changelog", read, write)...)
	cluster := fake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "in", "out", "changelog", "hidden"),
		kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "app", "app", acls...))
	app := client(t, kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.SASL(plain.Auth{User: "app", Pass: "app"}.AsMechanism()))
	needs := map[string][]kmsg.ACLOperation{"in": {read}, "changelog": {read, write}}
	if err := topics.CheckRights(t.Context(), app, needs); err != nil {
		t.Errorf("all rights are there: %v", err)
	}
	needs["out"], needs["hidden"] = []kmsg.ACLOperation{write}, []kmsg.ACLOperation{read}
	err := topics.CheckRights(t.Context(), app, needs)
	for _, want := range []string{"not authorized to WRITE topic out", "not authorized to DESCRIBE topic hidden"} {
		if !errors.Is(err, topics.ErrDenied) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if err != nil && strings.Count(err.Error(), "not authorized") != 2 {
		t.Errorf("got more than what is lacking: %v", err)
	}
}

func TestRacks(t *testing.T) {
	cl := client(t, kgo.SeedBrokers(fake(t, kfake.NumBrokers(2), kfake.SeedTopics(3, "in")).ListenAddrs()...))
	known, err := topics.Racks(t.Context(), cl, []string{"in"})
	if err != nil {
		t.Fatal(err)
	}
	brokers, err := kadm.NewClient(cl).ListBrokers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(known["in"]) != 3 {
		t.Fatalf("racks of partitions: %q", known)
	}
	for partition, racks := range known["in"] {
		if len(racks) != 1 || racks[0] != *brokers[0].Rack { // kfake has all its brokers in one rack
			t.Errorf("partition %d: %q", partition, racks)
		}
	}
	if _, err := topics.Racks(t.Context(), cl, []string{"in", "out"}); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("of a topic that is not there: %v", err)
	}
}
