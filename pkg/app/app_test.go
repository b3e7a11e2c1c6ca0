package app

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/streams"
)

// These name the topics to this test's binary as a process of its own, which is then a binary of build.
const inputEnv, outputEnv = "APP_TEST_INPUT", "APP_TEST_OUTPUT"

func TestMain(m *testing.M) {
	if os.Getenv(inputEnv) != "" {
		Main(build) // ends the process
	}
	os.Exit(m.Run())
}

// build counts in windows that a processor chooses, and hands each on when stream time is beyond it. Each record gives its count, too.
func build(b *streams.Builder) {
	in := streams.From(b, os.Getenv(inputEnv), streams.String, streams.String)
	streams.Process(in, "by-hand", streams.String, streams.Int, func(c *streams.Context[string, int64]) func(streams.Record[string, string]) error {
		all := streams.NewStore(c, "all", streams.String, streams.Int)
		windows := streams.NewWindowStore(c, "windows", streams.String, streams.Int, time.Minute)
		c.EveryStreamTime(10*time.Millisecond, func(at int64) error {
			for w, n := range windows.Ended(at) {
				c.ForwardAt(fmt.Sprintf("%s@%d", w.Key, w.Window.Start), n, w.Window.End)
				windows.Delete(w.Key, w.Window)
			}
			return nil
		})
		return func(r streams.Record[string, string]) error {
			n, _ := all.Get(r.Key)
			all.Put(r.Key, n+1)
			c.Forward(r.Key, n+1)
			w := streams.Bounds{Start: r.Timestamp / 50 * 50, End: r.Timestamp/50*50 + 50}
			n, _ = windows.Get(r.Key, w)
			windows.Put(r.Key, w, n+1)
			return nil
		}
	}).To(os.Getenv(outputEnv))
}

// scene is a Kafka with an input topic, which binaries of build read.
type scene struct {
	t      *testing.T
	broker string
	client *kgo.Client
	input  string
	sent   int64
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, broker: os.Getenv("STREAMWORKER_TEST_BROKERS"), input: "app-in-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	if s.broker == "" {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		s.broker = c.ListenAddrs()[0]
	}
	var err error
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.broker)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

// binary is an application whose one instance is started again and again.
type binary struct {
	*scene
	name string
	dir  string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

func (s *scene) binary(name string) *binary {
	s.t.Helper()
	b := &binary{scene: s, name: name + s.input, dir: s.t.TempDir()}
	forever := "-1" // the records are of 1970
	if _, err := kadm.NewClient(s.client).CreateTopics(context.Background(), 1, 1, map[string]*string{"retention.ms": &forever}, s.input, b.output()); err != nil {
		s.t.Fatal(err)
	}
	config := fmt.Sprintf("app: %s\nkafka: {brokers: [%q], heartbeat: 200ms, session_timeout: 6s}\nguarantee: exactly_once\ncommit_interval: 30ms\n", b.name, s.broker)
	if err := os.WriteFile(filepath.Join(b.dir, "app.yaml"), []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		b.kill()
		if s.t.Failed() {
			s.t.Logf("%s:\n%s", b.name, b.log.String())
		}
	})
	b.start()
	return b
}

func (b *binary) output() string { return b.name + "-out" }

func (b *binary) start() {
	b.t.Helper()
	b.cmd = exec.Command(os.Args[0], "run", "-c", filepath.Join(b.dir, "app.yaml"), "--instance-id", "one", "--state-dir", filepath.Join(b.dir, "state"))
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STREAMWORKER_") {
			b.cmd.Env = append(b.cmd.Env, v)
		}
	}
	b.cmd.Env = append(b.cmd.Env, inputEnv+"="+b.input, outputEnv+"="+b.output())
	b.cmd.Stdout, b.cmd.Stderr = &b.log, &b.log
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
}

// kill ends the process by SIGKILL.
func (b *binary) kill() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// send writes records over some keys, whose timestamps go on.
func (s *scene) send(n int, rnd *rand.Rand) {
	s.t.Helper()
	for range n {
		s.sent++
		s.client.Produce(context.Background(), &kgo.Record{Topic: s.input, Key: fmt.Appendf(nil, "key-%d", rnd.IntN(20)), Value: []byte("x"), Timestamp: time.UnixMilli(s.sent)}, nil)
	}
	if err := s.client.Flush(context.Background()); err != nil {
		s.t.Fatal(err)
	}
}

// awaitCommitted waits until the input up to an offset is committed.
func (b *binary) awaitCommitted(offset int64) {
	b.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		done, err := kadm.NewClient(b.client).FetchOffsets(context.Background(), b.name)
		if o, ok := done.Lookup(b.input, 0); err == nil && ok && o.At >= offset {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s has not come to offset %d: %v", b.name, offset, err)
		}
	}
}

// written is all that can be read of the output.
func (b *binary) written() (out []string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(b.client).ListCommittedOffsets(ctx, b.output())
	if err != nil {
		b.t.Fatal(err)
	}
	end, _ := ends.Lookup(b.output(), 0)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.broker), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{b.output(): {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	for next := int64(0); next < end.Offset; {
		if ctx.Err() != nil {
			b.t.Fatalf("%s does not come to its end", b.output())
		}
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if next = r.Offset + 1; !r.Attrs.IsControl() {
				out = append(out, fmt.Sprintf("%s %x %d", r.Key, r.Value, r.Timestamp.UnixMilli()))
			}
		})
	}
	return out
}

// A binary with a custom processor that is killed again and again, in the middle of windows, writes what one writes that nothing happens to,
// record by record.
func TestKilledBinary(t *testing.T) {
	s := newScene(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	calm, killed := s.binary("calm-"), s.binary("killed-")
	for range 4 {
		s.send(300, rnd)
		killed.awaitCommitted(s.sent - 150) // it is in the middle of them, or has just done them
		s.send(300, rnd)
		killed.kill()
		s.send(100, rnd)
		killed.start()
	}
	for _, b := range []*binary{calm, killed} {
		b.awaitCommitted(s.sent)
	}
	got, want := killed.written(), calm.written()
	if len(want) <= int(s.sent) {
		t.Errorf("%d records were written of %d: no windows are among them", len(want), s.sent)
	}
	if !slices.Equal(got, want) {
		at := 0
		for at < len(got) && at < len(want) && got[at] == want[at] {
			at++
		}
		t.Errorf("%d records were written, want %d; the first difference is at %d", len(got), len(want), at)
	}
}
