package command

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const adminToken = "correct-horse-battery-staple"

// queryable is an application that counts keys, with an admin address on each instance; "key-NNN" was counted NNN times.
type queryable struct {
	t                  *testing.T
	app, file, brokers string
	client             *kgo.Client
}

func newQueryable(t *testing.T, brokers, settings string) *queryable {
	t.Helper()
	app := "cmd-query-" + strings.ToLower(rand.Text()[:8])
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.DefaultProduceTopic(app+"-in"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopics(t.Context(), 4, 1, nil, app+"-in", app+"-out"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = adm.DeleteTopics(context.Background(), app+"-in", app+"-out", app+"-control", app+"-counts-changelog", app+"-hourly-changelog")
	})
	q := &queryable{t: t, app: app, brokers: brokers, client: cl}
	q.file = write(t, "q.yaml", fmt.Sprintf(`
app: %s
kafka: {brokers: [%q], heartbeat: 200ms}
admin: {listen: "127.0.0.1:0", token: %s}
%s
streams:
  - name: events
    from: {topic: %s-in, value: bytes}
    steps:
      - count: {store: counts}
      - to: {topic: %s-out, value: int}
  - name: hourly
    from: {stream: events}
    steps: [count: {store: hourly, window: {tumbling: 1h}}]
`, app, brokers, adminToken, settings, app, app))
	var all []*kgo.Record
	for i := range 20 {
		for range i {
			all = append(all, &kgo.Record{Key: fmt.Appendf(nil, "key-%03d", i), Value: []byte("x")})
		}
	}
	q.send(all...)
	return q
}

func (q *queryable) send(records ...*kgo.Record) {
	q.t.Helper()
	if err := q.client.ProduceSync(q.t.Context(), records...).FirstErr(); err != nil {
		q.t.Fatal(err)
	}
}

type queried struct {
	Key       string
	Value     int
	Timestamp int64
	Instance  string
	Task      string
	Role      string
	Lag       int64
}

// get asks for a key from anywhere.
func (q *queryable) get(key string, flags ...string) (queried, int, string) {
	q.t.Helper()
	var s shell
	var got queried
	code := s.run(q.t, append([]string{"query", "-c", q.file, "--brokers", q.brokers, "counts", key, "-o", "json"}, flags...)...)
	if code == exitOK {
		if err := json.Unmarshal([]byte(s.stdout), &got); err != nil {
			q.t.Fatalf("%v: %s", err, s.stdout)
		}
	}
	return got, code, s.stderr
}

func (q *queryable) awaitCounted() {
	q.t.Helper()
	await(q.t, "all is counted", func() bool {
		for i := 1; i < 20; i++ {
			if got, code, _ := q.get(fmt.Sprintf("key-%03d", i)); code != exitOK || got.Value != i {
				return false
			}
		}
		return true
	})
}

// Each key is answered by the instance that runs its task, whoever is asked.
func TestQuery(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers string) {
		q := newQueryable(t, brokers, "standbys: 1")
		a := start(t, q.file, "a")
		b := start(t, q.file, "b")
		var s shell
		status := func() string {
			s.run(t, "status", "--brokers", brokers, "--app", q.app, "-o", "json")
			return strings.Join(strings.Fields(s.stdout), "")
		}
		await(t, "two tasks and two standbys each", func() bool {
			out := status()
			return strings.Count(out, `"state":"running"`) == 2 && !strings.Contains(out, `"active":[]`) &&
				strings.Count(out, `"learning":[],"standby":["0_`) == 2 && strings.Contains(out, `"0_3"`)
		})
		q.awaitCounted()
		from := map[string]int{}
		for i := 1; i < 20; i++ {
			got, _, _ := q.get(fmt.Sprintf("key-%03d", i))
			if got.Role != "active" || got.Lag != 0 || got.Timestamp == 0 {
				t.Errorf("%+v", got)
			}
			from[got.Instance]++
			for _, p := range []*process{a, b} { // on the hosts
				if code := s.run(t, "query", "-c", q.file, "--state-dir", p.dir, "counts", got.Key); code != exitOK || !strings.Contains(s.stdout, got.Key+"  "+fmt.Sprint(i)+" ") {
					t.Errorf("on a host: %d %s%s", code, s.stdout, s.stderr)
				}
			}
		}
		if len(from) != 2 {
			t.Errorf("answers came from %v", from)
		}

		if code := s.run(t, "query", "-c", q.file, "--brokers", brokers); code != exitOK || !strings.Contains(s.stdout, "counts  string  int    4           -") {
			t.Errorf("stores: %d %q %s", code, s.stdout, s.stderr)
		}
		var list struct {
			Rows []queried
			More bool
		}
		code := s.run(t, "query", "-c", q.file, "--brokers", brokers, "counts", "--from", "key-003", "--limit", "5", "-o", "json")
		if err := json.Unmarshal([]byte(s.stdout), &list); code != exitOK || err != nil || !list.More || len(list.Rows) != 5 {
			t.Fatalf("range: %d %v %s%s", code, err, s.stdout, s.stderr)
		}
		for i, row := range list.Rows {
			if row.Value != i+3 || row.Key != fmt.Sprintf("key-%03d", i+3) || row.Task == "" {
				t.Errorf("row %d of the range: %+v", i, row)
			}
		}
		if code := s.run(t, "query", "-c", q.file, "--brokers", brokers, "counts", "--prefix", "key-01"); code != exitOK || strings.Count(s.stdout, "key-01") != 10 || strings.Contains(s.stdout, "more") {
			t.Errorf("prefix: %d %s%s", code, s.stdout, s.stderr)
		}

		// Of a store with windows: one key, all keys of a time, and of a time without any.
		var hour struct {
			Rows []struct {
				queried
				Start int64 `json:"window_start"`
				End   int64 `json:"window_end"`
			}
			More bool
		}
		code = s.run(t, "query", "-c", q.file, "--brokers", brokers, "hourly", "key-007", "-o", "json")
		if err := json.Unmarshal([]byte(s.stdout), &hour); code != exitOK || err != nil || hour.More || len(hour.Rows) == 0 {
			t.Fatalf("windows of a key: %d %v %s%s", code, err, s.stdout, s.stderr)
		}
		count, first := 0, hour.Rows[0]
		for _, row := range hour.Rows { // two, if an hour has begun meanwhile
			count += row.Value
		}
		if count != 7 || first.Key != "key-007" || first.End-first.Start != 3600_000 || first.Task == "" {
			t.Errorf("windows of a key: %+v", hour.Rows)
		}
		shown := fmt.Sprintf("key-007@%d/%d  ", first.Start, first.End)
		if code := s.run(t, "query", "-c", q.file, "--brokers", brokers, "hourly", "--window-from", fmt.Sprint(first.Start)); code != exitOK || !strings.Contains(s.stdout, shown) || strings.Count(s.stdout, "@") < 19 {
			t.Errorf("windows of a time: %d %s%s", code, s.stdout, s.stderr)
		}
		if code := s.run(t, "query", "-c", q.file, "--brokers", brokers, "hourly", "--window-to", "2001-01-01T00:00:00Z"); code != exitOK || s.stdout != "no keys\n" {
			t.Errorf("windows of another time: %d %s%s", code, s.stdout, s.stderr)
		}

		// What goes wrong, and what the exit code says.
		for _, c := range []struct {
			args []string
			code int
			want string
		}{
			{[]string{"counts", "nothing"}, exitNoKey, "nothing is stored for this key in counts"},
			{[]string{"count", "key-001"}, exitError, `there is no store "count"; there are counts, hourly`},
			{[]string{"counts", "key-001", "--partition", "7"}, exitUsage, "partitions 0 to 3"},
			{[]string{"counts", "key-001", "--prefix", "k"}, exitUsage, "leave KEY away"},
			{[]string{"counts", "--window-from", "7"}, exitUsage, "store counts has no windows"},
			{[]string{"hourly", "--window-from", "now"}, exitUsage, "want ms since the epoch"},
			{[]string{"hourly", "key-001", "--window-to", "7"}, exitNoKey, "nothing is stored for this key in hourly"},
			{[]string{"counts", "--prefix", "a", "--to", "b"}, exitUsage, "--prefix excludes"},
			{[]string{"--limit", "7"}, exitUsage, "which store?"},
			{[]string{"counts", "key-001", "--token-file", write(t, "token", "not-the-right-token")}, exitError, "does not let this client read"},
			{[]string{"counts", "key-001", "--tls-ca", q.file}, exitUsage, "no certificate in PEM form"},
		} {
			if code := s.run(t, append([]string{"query", "-c", q.file, "--brokers", brokers}, c.args...)...); code != c.code || !strings.Contains(s.stderr, c.want) {
				t.Errorf("%v: exit code %d, want %d; %q, want %q", c.args, code, c.code, s.stderr, c.want)
			}
		}
	})
}

// While an instance drains, a reader who asks on and on gets an answer each time, and never an older one.
func TestQueryDuringHandover(t *testing.T) {
	onEachKafka(t, func(t *testing.T, brokers string) {
		for _, guarantee := range []string{"at_least_once", "exactly_once"} {
			t.Run(guarantee, func(t *testing.T) {
				q := newQueryable(t, brokers, "guarantee: "+guarantee)
				a := start(t, q.file, "a")
				q.awaitCounted()
				b := start(t, q.file, "b")
				var s shell
				await(t, "both run", func() bool {
					s.run(t, "status", "--brokers", brokers, "--app", q.app, "-o", "json")
					return strings.Count(s.stdout, `"running"`) == 2 && !strings.Contains(s.stdout, `"active": []`) && strings.Count(s.stdout, `"learning": []`) == 2
				})
				var done atomic.Bool
				left := make(chan int, 1)
				go func() {
					var s shell
					code := s.run(t, "leave", "--brokers", brokers, "--app", q.app, "--instance", "a", "--wait")
					done.Store(true)
					left <- code
				}()
				last, sources, asked := map[string]int{}, map[string]bool{}, 0
				for after := 0; after < 10; asked++ {
					if done.Load() {
						after++ // some more, when it is over
					}
					key := fmt.Sprintf("key-%03d", 1+asked%19)
					q.send(&kgo.Record{Key: []byte(key), Value: []byte("x")})
					got, code, stderr := q.get(key)
					if code != exitOK || got.Value < last[key] {
						t.Fatalf("%s after %d: %+v, exit code %d: %s", key, last[key], got, code, stderr)
					}
					last[key], sources[got.Instance] = got.Value, true
				}
				if code := <-left; code != exitOK {
					t.Errorf("leave: exit code %d", code)
				}
				a.ends(t, exitDrained)
				if !sources["b"] {
					t.Errorf("answers came from %v", sources)
				}
				_ = b
				t.Logf("%d answers during the handover", asked)
			})
		}
	})
}

// An address with TLS is asked by those who know its authority.
func TestQueryByTLS(t *testing.T) {
	known := httptest.NewTLSServer(http.NotFoundHandler())
	pair := known.TLS.Certificates[0]
	known.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile := write(t, "tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	keyFile := write(t, "tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	q := newQueryable(t, strings.Join(c.ListenAddrs(), ","), "")
	text, err := os.ReadFile(q.file)
	if err != nil {
		t.Fatal(err)
	}
	q.file = write(t, "tls.yaml", strings.Replace(string(text), "token: ", fmt.Sprintf("tls: {cert: %s, key: %s}, token: ", certFile, keyFile), 1))
	start(t, q.file, "a")
	await(t, "a count", func() bool {
		got, code, _ := q.get("key-007", "--tls-ca", certFile)
		return code == exitOK && got.Value == 7
	})
	if _, code, stderr := q.get("key-007", "--patience", "1ms"); code != exitError || !strings.Contains(stderr, "instance a cannot be reached") || !strings.Contains(stderr, "certificate") {
		t.Errorf("an unknown authority: %d %s", code, stderr)
	}
}
