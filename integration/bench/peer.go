package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// peer is Kafka Streams.
type peer struct{ b *bench }

// peerDir is where its program is built; git ignores it.
func peerDir() string { return filepath.Join(harness.Root(), "bin", "streams") }

func java() string {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return filepath.Join(home, "bin", "java")
	}
	return "java"
}

// buildPeer compiles the jobs and fetches Kafka Streams.
func buildPeer(ctx context.Context) error {
	pom := filepath.Join(harness.Root(), "integration", "bench", "streams", "pom.xml")
	cmd := exec.CommandContext(ctx, "mvn", "-B", "-q", "-Dstyle.color=never", "-f", pom, "-Doutput="+peerDir(), "package")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building Kafka Streams by mvn (it needs Maven and a JDK 17 or newer): %w\n%s", err, text)
	}
	return nil
}

func (peer) name() string { return peerSide }

func (p peer) start(j job, id string, expect int) (instance, error) {
	dir, err := p.b.stateDir(j, id)
	if err != nil {
		return nil, err
	}
	file := dir + ".properties"
	if err := os.WriteFile(file, []byte(p.properties(j, id, dir)), 0o644); err != nil {
		return nil, err
	}
	argv := append([]string{java()}, p.b.jvm...)
	argv = append(argv, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", filepath.Join(peerDir(), "bench-streams.jar")+":"+filepath.Join(peerDir(), "lib", "*"),
		"streams.Peer", j.kind, file, j.input, j.output, strconv.Itoa(expect))
	started, err := p.b.startProcess(j.app+"-"+id, nil, argv...)
	return peerInstance{started}, err
}

// properties are its settings; what is not here has Kafka Streams' default.
func (p peer) properties(j job, id, dir string) string {
	guarantee := j.guarantee
	if guarantee == exactlyOnce {
		guarantee = "exactly_once_v2"
	}
	lines := []string{
		"application.id=" + j.app,
		"client.id=" + j.app + "-" + id,
		"bootstrap.servers=" + p.b.kafka.Address,
		"state.dir=" + dir,
		"num.stream.threads=1",
		"processing.guarantee=" + guarantee,
		"commit.interval.ms=" + strconv.FormatInt(j.commit.Milliseconds(), 10),
		"statestore.cache.max.bytes=" + strconv.FormatInt(j.cache, 10),
		"auto.offset.reset=earliest",
	}
	return strings.Join(append(append(lines, p.b.peerConf...), j.more...), "\n") + "\n"
}

// stored is the count alone; Kafka has the timestamp of the record.
func (peer) stored(count int64, _ time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(count))
}

type peerInstance struct{ *process }

func (i peerInstance) proc() *process { return i.process }

func says(text string) func(string) bool {
	return func(l string) bool { return strings.HasPrefix(l, text) }
}

func (i peerInstance) running(ctx context.Context, tasks int) (time.Time, error) {
	l, err := i.await(ctx, fmt.Sprintf("running with %d tasks", tasks), func(text string) bool {
		var active int
		n, _ := fmt.Sscanf(text, "running active=%d", &active)
		return n == 1 && active >= tasks
	})
	return l.at, err
}

func (i peerInstance) processed(ctx context.Context) error {
	_, err := i.await(ctx, "processed", says("processed"))
	return err
}

func (i peerInstance) restored() (records int64, took time.Duration, err error) {
	records, took, _, err = i.read("restored", time.Time{})
	return records, took, err
}

// learned is of warm-up tasks; where it had none, its tasks were moved to it before their state was there.
func (i peerInstance) learned(since time.Time) (int64, time.Time, error) {
	for _, how := range []string{"learned", "restored"} {
		if records, _, at, err := i.read(how, since); err != nil || !at.IsZero() {
			return records, at, err
		}
	}
	return 0, time.Time{}, fmt.Errorf("%s has not said that it read any changelog: %s", i.name, i.tail())
}

// read adds up what it has said about changelogs since then, and tells when it did so last; zero: it has not.
func (i peerInstance) read(how string, since time.Time) (records int64, took time.Duration, at time.Time, err error) {
	for _, l := range i.matchingSince(how+" records=", since) {
		var n, ms int64
		if _, err := fmt.Sscanf(l.text, how+" records=%d ms=%d", &n, &ms); err != nil {
			return 0, 0, at, fmt.Errorf("line %q: %w", l.text, err)
		}
		records += n
		took += time.Duration(ms) * time.Millisecond
		at = l.at
	}
	return records, took, at, nil
}

// leave closes it: it leaves the group, and the others restore its tasks.
func (i peerInstance) leave(ctx context.Context) (int, error) {
	if err := i.stop(); err != nil {
		return 0, err
	}
	l, err := i.await(ctx, "closing", says("closing active="))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimPrefix(l.text, "closing active="))
}
