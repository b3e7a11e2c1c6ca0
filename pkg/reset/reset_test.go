package reset_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/instance"
	"github.com/streamworker/streamworker/pkg/reset"
	"github.com/streamworker/streamworker/pkg/state"
)

const file = `
app: %[1]s
guarantee: %[3]s
instance_id: a
kafka: {brokers: [%[2]q], heartbeat: 200ms, session_timeout: 6s}
commit_interval: 50ms
on_terminate: release
state: {dir: %[4]q}
streams:
  - name: events
    from: {topic: %[1]s-in}
    steps:
      - rekey: value
      - count: {store: counts}
      - to: {topic: %[1]s-out, value: int}
`

// records that are counted, of so many keys.
const (
	records = 60
	keys    = 7
)

type world struct {
	t       *testing.T
	cfg     *config.Config
	client  *kgo.Client
	cluster *kfake.Cluster // nil on a real Kafka
}

func newWorld(t *testing.T, guarantee config.Guarantee, cluster *kfake.Cluster) *world {
	t.Helper()
	w := &world{t: t, cluster: cluster}
	brokers := os.Getenv("STREAMWORKER_TEST_BROKERS")
	if cluster != nil {
		brokers = cluster.ListenAddrs()[0]
	}
	app := "reset-" + strings.ToLower(rand.Text()[:8])
	dir, err := os.MkdirTemp("/tmp", "swr") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if w.cfg, err = config.Parse("app.yaml", fmt.Appendf(nil, file, app, brokers, guarantee, filepath.Join(dir, "state")), nil, config.Overrides{}); err != nil {
		t.Fatal(err)
	}
	if w.client, err = kgo.NewClient(append(control.Opts(), kgo.SeedBrokers(brokers))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	adm := kadm.NewClient(w.client)
	if _, err := adm.CreateTopics(t.Context(), 2, 1, nil, app+"-in", app+"-out"); err != nil {
		t.Fatal(err)
	}
	if cluster == nil {
		t.Cleanup(func() { // what the test leaves on a Kafka that is not its own
			all, err := adm.ListTopics(context.Background())
			if err == nil {
				ours := slices.DeleteFunc(all.Names(), func(name string) bool { return !strings.HasPrefix(name, app) })
				_, err = adm.DeleteTopics(context.Background(), ours...)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for i := range records {
		r := &kgo.Record{Topic: app + "-in", Partition: int32(i % 2), Value: fmt.Appendf(nil, "key-%d", i%keys)}
		if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// onEachKafka runs a test on kfake, and on a real Kafka if there is one.
func onEachKafka(t *testing.T, test func(*testing.T, *kfake.Cluster)) {
	t.Run("kfake", func(t *testing.T) { test(t, fake(t)) })
	t.Run("kafka", func(t *testing.T) {
		if os.Getenv("STREAMWORKER_TEST_BROKERS") == "" {
			t.Skip("set STREAMWORKER_TEST_BROKERS to test on a real Kafka")
		}
		test(t, nil)
	})
}

func fake(t *testing.T) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

func (w *world) resetter() *reset.Resetter {
	return reset.New(w.cfg, w.client, control.NewBus(w.client, w.cfg.App, slog.New(slog.DiscardHandler)))
}

// start runs an instance until the returned function is called.
func (w *world) start() (stop func()) {
	w.t.Helper()
	inst := instance.New(w.cfg, instance.Options{})
	done := make(chan error, 1)
	go func() { done <- inst.Run(context.Background()) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		inst.Stop(config.Release)
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

// count runs an instance until the output has so many records, and returns the last count of each key.
func (w *world) count(total int) map[string]string {
	w.t.Helper()
	stop := w.start()
	defer stop()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.cfg.Kafka.Brokers...), kgo.ConsumeTopics(w.cfg.App+"-out"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	counts := make(map[string]string)
	for seen := 0; seen < total; {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			w.t.Fatalf("%d of %d results", seen, total)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			seen++
			counts[string(r.Key)] = string(r.Value)
		})
	}
	return counts
}

func steps(p *reset.Plan) []string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.String())
	}
	return out
}

func TestCountsAnew(t *testing.T) {
	for _, guarantee := range []config.Guarantee{config.AtLeastOnce, config.ExactlyOnce} {
		t.Run(string(guarantee), func(t *testing.T) {
			onEachKafka(t, func(t *testing.T, cluster *kfake.Cluster) {
				w := newWorld(t, guarantee, cluster)
				app := w.cfg.App
				first := w.count(records)
				if len(first) != keys || first["key-0"] != "\x00\x00\x00\x00\x00\x00\x00\x09" {
					t.Fatalf("wrong counts already: %v", first)
				}
				plan, err := w.resetter().Plan(t.Context(), reset.All)
				if err != nil {
					t.Fatal(err)
				}
				want := []string{
					"group " + app, "topic " + app + "-counts-changelog", "topic " + app + "-counts-repartition", "topic " + app + "-control", "task 1_0", "task 1_1",
				}
				if !slices.Equal(steps(plan), want) {
					t.Fatalf("the plan is %q, want %q", steps(plan), want)
				}
				told := 0
				if err := w.resetter().Run(t.Context(), plan, func(reset.Step) { told++ }); err != nil || told != len(plan.Steps) {
					t.Fatalf("told of %d of %d steps: %v", told, len(plan.Steps), err)
				}
				if again, err := w.resetter().Plan(t.Context(), reset.All); err != nil || len(again.Steps) > 0 {
					t.Fatalf("after the reset there is still to be deleted: %v, %v", again, err)
				}
				if second := w.count(2 * records); !maps.Equal(first, second) {
					t.Errorf("counted anew: %v, before: %v", second, first)
				}
			})
		})
	}
}

func TestRefusesWhileAlive(t *testing.T) {
	onEachKafka(t, func(t *testing.T, cluster *kfake.Cluster) {
		w := newWorld(t, config.AtLeastOnce, cluster)
		w.count(records)
		early, err := w.resetter().Plan(t.Context(), reset.Scope{Offsets: true, Topics: true})
		if err != nil {
			t.Fatal(err)
		}
		stop := w.start()
		for { // until it is a member
			_, err = w.resetter().Plan(t.Context(), reset.All)
			if err != nil && strings.Contains(err.Error(), "has members") {
				break
			}
			if err != nil && !errors.Is(err, reset.ErrAlive) {
				t.Fatal(err)
			}
		}
		if !errors.Is(err, reset.ErrAlive) || !strings.Contains(err.Error(), w.cfg.App+"-a at ") {
			t.Errorf("want ErrAlive that names the member, got %v", err)
		}
		if err := w.resetter().Run(t.Context(), early, func(s reset.Step) { t.Errorf("deleted %s of a running application", s) }); !errors.Is(err, reset.ErrAlive) {
			t.Errorf("a plan made before the start: want ErrAlive, got %v", err)
		}
		stop()
		if _, err := w.resetter().Plan(t.Context(), reset.All); err != nil {
			t.Errorf("after the stop: %v", err)
		}
	})
}

// An instance that lost the group is no member, and would join again.
func TestRefusesWhileOutsideOfGroup(t *testing.T) {
	w := newWorld(t, config.AtLeastOnce, fake(t))
	w.count(records)
	bus := control.NewBus(w.client, w.cfg.App, slog.New(slog.DiscardHandler))
	if err := bus.PutStatus(t.Context(), control.Status{Instance: "lost", State: control.Starting}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.resetter().Plan(t.Context(), reset.All); !errors.Is(err, reset.ErrAlive) || !strings.Contains(err.Error(), "lost (starting") {
		t.Errorf("want ErrAlive that names the instance, got %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	cluster := fake(t)
	w := newWorld(t, config.AtLeastOnce, cluster)
	first := w.count(records)
	plan, err := w.resetter().Plan(t.Context(), reset.All)
	if err != nil {
		t.Fatal(err)
	}
	refused := w.cfg.App + "-counts-repartition"
	cluster.ControlKey(int16(kmsg.DeleteTopics), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := kreq.(*kmsg.DeleteTopicsRequest)
		if *req.Topics[0].Topic != refused {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
		topic := kmsg.NewDeleteTopicsResponseTopic()
		topic.Topic, topic.ErrorCode = &refused, kerr.TopicDeletionDisabled.Code
		resp.Topics = append(resp.Topics, topic)
		cluster.DropControl()
		return resp, nil, true
	})
	err = w.resetter().Run(t.Context(), plan, func(reset.Step) {})
	if !errors.Is(err, reset.ErrIncomplete) || !errors.Is(err, kerr.TopicDeletionDisabled) {
		t.Fatalf("want ErrIncomplete, got %v", err)
	}
	for _, want := range []string{"done: group " + w.cfg.App + ", topic " + w.cfg.App + "-counts-changelog;", "left: topic " + refused, "delete.topic.enable"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	rest, err := w.resetter().Plan(t.Context(), reset.All)
	if err != nil {
		t.Fatal(err)
	}
	if want := steps(plan)[2:]; !slices.Equal(steps(rest), want) {
		t.Errorf("left is %q, want %q", steps(rest), want)
	}
	if err := w.resetter().Run(t.Context(), rest, func(reset.Step) {}); err != nil {
		t.Fatal(err)
	}
	if second := w.count(2 * records); !maps.Equal(first, second) {
		t.Errorf("counted anew: %v, before: %v", second, first)
	}
}

func TestLocalState(t *testing.T) {
	w := newWorld(t, config.AtLeastOnce, fake(t))
	dir, outside := w.cfg.State.Dir, t.TempDir()
	kept := filepath.Join(outside, "kept")
	for _, path := range []string{kept, filepath.Join(dir, "tasks", "1_0", "000001.sst"), filepath.Join(dir, "tasks", "notes", "x"), filepath.Join(dir, "leaving.json")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte("12345"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{filepath.Join(dir, "tasks", "1_1"), filepath.Join(dir, "tasks", "1_0", "link")} {
		if err := os.Symlink(outside, link); err != nil {
			t.Fatal(err)
		}
	}
	scope := reset.Scope{State: true}
	plan, err := w.resetter().Plan(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"task 1_0", "journal leaving.json"}; !slices.Equal(steps(plan), want) || plan.Steps[0].Bytes != 5 {
		t.Errorf("the plan is %+v, want %q", plan.Steps, want)
	}
	held, err := state.TakeDirectory(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.resetter().Run(t.Context(), plan, func(s reset.Step) { t.Errorf("deleted %s from a directory in use", s) }); !errors.Is(err, state.ErrDirInUse) {
		t.Errorf("want ErrDirInUse, got %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.resetter().Run(t.Context(), plan, func(reset.Step) {}); err != nil {
		t.Fatal(err)
	}
	for path, there := range map[string]bool{
		kept: true, filepath.Join(dir, "tasks", "notes", "x"): true, filepath.Join(dir, "tasks", "1_1"): true,
		filepath.Join(dir, "tasks", "1_0"): false, filepath.Join(dir, "leaving.json"): false,
	} {
		if _, err := os.Lstat(path); (err == nil) != there {
			t.Errorf("%s: want there %t: %v", path, there, err)
		}
	}
}

// With the topics alone, no offset of a repartition topic may stay: it would be beyond the end of the new one. The brokers drop
// offsets with their topic.
func TestTopicsAlone(t *testing.T) {
	onEachKafka(t, func(t *testing.T, cluster *kfake.Cluster) {
		w := newWorld(t, config.AtLeastOnce, cluster)
		w.count(records)
		plan, err := w.resetter().Plan(t.Context(), reset.Scope{Topics: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.resetter().Run(t.Context(), plan, func(reset.Step) {}); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			committed, err := kadm.NewClient(w.client).FetchOffsets(t.Context(), w.cfg.Kafka.Group)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := committed[w.cfg.App+"-in"]; !ok {
				t.Fatalf("the inputs' offsets are gone: %v", committed)
			}
			if _, ok := committed[w.cfg.App+"-counts-repartition"]; !ok {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("offsets of the repartition topic stay: %v", committed)
			}
		}
	})
}

// With a store alone the counts begin anew, and the input goes on from where it is, though the former rows are on disk.
func TestStoreAlone(t *testing.T) {
	onEachKafka(t, func(t *testing.T, cluster *kfake.Cluster) {
		w := newWorld(t, config.AtLeastOnce, cluster)
		w.count(records)
		plan, err := w.resetter().Plan(t.Context(), reset.Scope{Stores: []string{"counts", "counts"}})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"topic " + w.cfg.App + "-counts-changelog"}; !slices.Equal(steps(plan), want) {
			t.Fatalf("the plan is %q, want %q", steps(plan), want)
		}
		if err := w.resetter().Run(t.Context(), plan, func(reset.Step) {}); err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: w.cfg.App + "-in", Partition: 0, Value: []byte("key-0")}
		if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if got := w.count(records + 1)["key-0"]; got != "\x00\x00\x00\x00\x00\x00\x00\x01" {
			t.Errorf("the count is %q, want 1", got)
		}
		if _, err := w.resetter().Plan(t.Context(), reset.Scope{Stores: []string{"sums"}}); err == nil || !strings.Contains(err.Error(), `no store "sums"`) {
			t.Errorf("a store that there is not: %v", err)
		}
	})
}

// A part of an application that is reset alone is a warning.
func TestWarnings(t *testing.T) {
	w := newWorld(t, config.AtLeastOnce, fake(t))
	for _, c := range []struct {
		scope reset.Scope
		want  string
	}{
		{reset.Scope{Offsets: true, State: true}, "counted everything twice"}, {reset.Scope{Topics: true}, "will lack everything before"},
		{reset.Scope{Stores: []string{"counts"}}, "the stores named start empty"}, {reset.Scope{State: true}, ""}, {reset.All, ""},
	} {
		scope, want := c.scope, c.want
		plan, err := w.resetter().Plan(t.Context(), scope)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan.Warnings, "\n"); (want == "") != (text == "") || !strings.Contains(text, want) {
			t.Errorf("%+v: warnings %q, want %q", scope, text, want)
		}
	}
}
