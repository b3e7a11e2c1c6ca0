package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/streamworker/streamworker/integration/harness"
)

// worker is streamworker.
type worker struct{ b *bench }

func (worker) name() string { return workerSide }

// steps are the jobs, each the twin of one of Kafka Streams', with places for input, output and when results are sent on.
var steps = map[string]string{
	countJob: `  - name: events
    from: {topic: %[1]s, value: bytes}
    steps:
      - count: {store: ` + store + `, emit: %[3]s}
      - to: {topic: %[2]s, value: int}
`,
	windowedJob: `  - name: events
    from: {topic: %[1]s, value: bytes}
    steps:
      - count: {store: ` + store + `, window: {tumbling: 1m, grace: 1m}, emit: %[3]s}
      - to: {topic: %[2]s, value: int}
`,
	filterJob: `  - name: orders
    from: {topic: %[1]s, value: json}
    steps:
      - filter: value.amount > 50
      - map: '{"user": value.user, "cents": int(value.amount * 100)}'
      - to: {topic: %[2]s, value: json}
`,
}

// config is its file; what is not here has streamworker's default.
func (w worker) config(j job) string {
	return fmt.Sprintf(`app: %s
kafka: {brokers: ["%s"]}
threads: 1
guarantee: %s
commit_interval: %s
on_terminate: release
admin: {listen: "127.0.0.1:0"}
log: {format: json}
streams:
`, j.app, w.b.kafka.Address, j.guarantee, j.commit) + fmt.Sprintf(steps[j.kind], j.input, j.output, j.emit())
}

func (w worker) start(j job, id string, expect int) (instance, error) {
	dir, err := w.b.stateDir(j, id)
	if err != nil {
		return nil, err
	}
	file := dir + ".yaml"
	if err := os.WriteFile(file, []byte(w.config(j)), 0o644); err != nil {
		return nil, err
	}
	p, err := w.b.startProcess(j.app+"-"+id, w.b.workerEnv, harness.Binary(), "run", "-c", file, "--instance-id", id, "--state-dir", dir)
	return workerInstance{process: p, dir: dir, expect: expect}, err
}

// stored is the timestamp of the last record that was counted, in front of the count.
func (worker) stored(count int64, at time.Time) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli())), uint64(count))
}

type workerInstance struct {
	*process
	dir    string
	expect int
}

func (i workerInstance) proc() *process { return i.process }

// How often an instance is asked over HTTP.
const (
	readyPoll   = 5 * time.Millisecond
	metricsPoll = 50 * time.Millisecond
)

func (i workerInstance) running(ctx context.Context, tasks int) (time.Time, error) {
	address, err := i.admin(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if tasks > 0 {
		if err := i.reaches(ctx, address, `streamworker_tasks{role="active"}`, tasks); err != nil {
			return time.Time{}, err
		}
	}
	err = i.until(ctx, readyPoll, "runs its tasks", func() (bool, error) {
		code, _, err := get(ctx, address+"/readyz")
		return code == http.StatusOK, err
	})
	return time.Now(), err
}

func (i workerInstance) processed(ctx context.Context) error {
	address, err := i.admin(ctx)
	if err != nil {
		return err
	}
	return i.reaches(ctx, address, `streamworker_records_total{direction="in"}`, i.expect)
}

// reaches waits until a metric is so large at least.
func (i workerInstance) reaches(ctx context.Context, address, metric string, least int) error {
	return i.until(ctx, metricsPoll, fmt.Sprintf("has %s %d", metric, least), func() (bool, error) {
		_, text, err := get(ctx, address+"/metrics")
		if err != nil {
			return false, err
		}
		for l := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(l, metric+" "); ok {
				n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
				return int(n) >= least, err
			}
		}
		return false, nil
	})
}

// restored adds the tasks' records up. The time is from where the instance begins to join the group, which is a part of
// it, to the last task that is restored.
func (i workerInstance) restored() (records int64, took time.Duration, err error) {
	records, ended, err := i.learned(time.Time{})
	if err != nil {
		return 0, 0, err
	}
	began := i.matching(`"msg":"running"`)
	if len(began) == 0 {
		return 0, 0, fmt.Errorf("%s has not said that it is running: %s", i.name, i.tail())
	}
	return records, ended.Sub(began[0].at), nil
}

// learned counts a task when it is taken, which comes right after it was learned.
func (i workerInstance) learned(since time.Time) (records int64, at time.Time, err error) {
	for _, l := range i.matchingSince(`"msg":"restored"`, since) {
		var task struct {
			Records int64 `json:"records"`
		}
		if err := json.Unmarshal([]byte(l.text), &task); err != nil {
			return 0, at, fmt.Errorf("log line %q: %w", l.text, err)
		}
		records += task.Records
		at = l.at
	}
	if at.IsZero() {
		return 0, at, fmt.Errorf("%s has not said that it restored anything: %s", i.name, i.tail())
	}
	return records, at, nil
}

// drained is the exit code of an instance that has left after handing everything over.
const drained = 10

// leave drains it: the others take its tasks over while the stream flows.
func (i workerInstance) leave(ctx context.Context) (int, error) {
	text, err := exec.CommandContext(ctx, harness.Binary(), "status", "--state-dir", i.dir, "-o", "json").Output()
	if err != nil {
		return 0, fmt.Errorf("asking %s for its status: %w", i.name, err)
	}
	var status harness.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return 0, fmt.Errorf("status of %s: %w", i.name, err)
	}
	tasks := 0
	for _, t := range status.Instances {
		if strings.HasSuffix(i.name, "-"+t.ID) {
			tasks = len(t.Active)
		}
	}
	if text, err := exec.CommandContext(ctx, harness.Binary(), "leave", "--state-dir", i.dir).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("telling %s to leave: %w: %s", i.name, err, text)
	}
	if err := i.ended(stopLimit); err != nil {
		return 0, err
	}
	if i.code != drained {
		return 0, fmt.Errorf("%s ended with exit code %d, want %d: %s", i.name, i.code, drained, i.tail())
	}
	return tasks, nil
}

// admin is where it serves its metrics and health, once it has said so.
func (i workerInstance) admin(ctx context.Context) (string, error) {
	const says = `"msg":"serving metrics and health"`
	l, err := i.await(ctx, "where it serves its health", func(text string) bool { return strings.Contains(text, says) })
	if err != nil {
		return "", err
	}
	var fields struct{ Address string }
	if err := json.Unmarshal([]byte(l.text), &fields); err != nil {
		return "", fmt.Errorf("log line %q: %w", l.text, err)
	}
	return "http://" + fields.Address, nil
}

// until polls until a condition holds; errors of a process that has just begun to listen are none.
func (i workerInstance) until(ctx context.Context, every time.Duration, what string, holds func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := holds()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting until %s %s: %w", i.name, what, ctx.Err()), err)
		case <-i.done:
			return fmt.Errorf("%s ended with exit code %d before it %s: %s", i.name, i.code, what, i.tail())
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, url string) (code int, text string, err error) {
	return getWith(ctx, http.DefaultClient, url)
}

func getWith(ctx context.Context, client *http.Client, url string) (code int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}
