package query

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// peerGroup are instances that say what they are told to.
type peerGroup struct {
	t     *testing.T
	mu    sync.Mutex
	peers []Peer
	asked []string
}

// add starts an instance; answers are given one after the other, the last one again and again.
func (g *peerGroup) add(id string, code int, answers ...any) {
	g.t.Helper()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked = append(g.asked, id+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
		answer := answers[min(n, len(answers)-1)]
		n++
		if f, ok := answer.(Failure); ok && code == http.StatusOK {
			w.WriteHeader(statusOf[f.Code])
		} else {
			w.WriteHeader(code)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	g.t.Cleanup(server.Close)
	g.peers = append(g.peers, Peer{Instance: id, URL: server.URL, HTTP: &http.Client{
		Transport: server.Client().Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
}

func (g *peerGroup) client(patience time.Duration) *Client {
	return &Client{Peers: func(context.Context) ([]Peer, error) { return g.peers, nil }, Token: "secret", Patience: patience}
}

func answerOf(id string) Answer {
	return Answer{Origin: Origin{Instance: id, Task: "0_1"}, Row: Row{Key: json.RawMessage(`"k"`), Value: json.RawMessage("5")}}
}

func elsewhereOf(id, owner string) Failure {
	return Failure{Message: "task 0_1 is on " + owner, Code: CodeElsewhere, Instance: id, Task: "0_1", Owner: owner}
}

func TestAsk(t *testing.T) {
	moving := Failure{Message: "moving", Code: CodeMoving, Instance: "a", Task: "0_1"}
	const short, long = time.Millisecond, time.Minute
	for name, c := range map[string]struct {
		make     func(g *peerGroup)
		stale    bool
		patience time.Duration
		want     string // the error, or the instance that answers
		asked    string // in this order
	}{
		"the first": {func(g *peerGroup) { g.add("a", 200, answerOf("a")); g.add("b", 200, answerOf("b")) }, false, short, "a", "a"},
		"the owner": {func(g *peerGroup) {
			g.add("a", 200, elsewhereOf("a", "c"))
			g.add("b", 200, answerOf("b"))
			g.add("c", 200, answerOf("c"))
		}, false, short, "c", "a c"},
		"after a wait": {func(g *peerGroup) { g.add("a", 200, moving, answerOf("a")) }, false, long, "a", "a a"},
		"a start": {func(g *peerGroup) {
			g.add("a", 200, Failure{Message: "starting", Code: CodeMoving, Instance: "a"})
			g.add("b", 200, answerOf("b"))
		}, false, short, "b", "a b"},
		"a copy while it moves": {func(g *peerGroup) { g.add("a", 200, moving); g.add("b", 200, answerOf("b")) }, true, short, "b", "a b"},
		"no copy is asked for":  {func(g *peerGroup) { g.add("a", 200, moving); g.add("b", 200, answerOf("b")) }, false, short, "moving", "a"},
		"no address":            {func(g *peerGroup) { g.add("a", 421, elsewhereOf("a", "z")) }, false, short, "task 0_1 is on z", "a"},
		"another instance":      {func(g *peerGroup) { g.add("a", 200, answerOf("b")) }, false, short, "answers b: set admin.advertise", "a"},
		"something else":        {func(g *peerGroup) { g.add("a", 200, "hello") }, false, short, "nothing that can be read", "a"},
		"no code":               {func(g *peerGroup) { g.add("a", 502, map[string]string{"instance": "a"}) }, false, short, "answers 502", "a"},
		"denied":                {func(g *peerGroup) { g.add("a", 401, Failure{Message: "no token"}); g.add("b", 200, answerOf("b")) }, false, long, "does not let this client read: a at", "a"},
		"a bad question": {func(g *peerGroup) {
			g.add("a", 200, Failure{Message: "no such store", Code: CodeUnknownStore, Instance: "a"})
		}, false, long, "no such store", "a"},
		"nobody": {func(*peerGroup) {}, false, long, "no instance can be asked", ""},
		"unreachable": {func(g *peerGroup) {
			g.add("a", 200, elsewhereOf("a", "b"))
			g.peers = append(g.peers, Peer{Instance: "b", URL: "http://127.0.0.1:1", HTTP: http.DefaultClient})
		}, false, short, "instance b cannot be reached", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &peerGroup{t: t}
			c.make(g)
			q := url.Values{"key": {"a b/&"}}
			if c.stale {
				q.Set("stale", "true")
			}
			waits := 0
			cl := g.client(c.patience)
			cl.Waiting = func(error, time.Duration) { waits++ }
			var a Answer
			err := cl.Ask(t.Context(), "counts", q, &a)
			got := a.Instance
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) || (err == nil) != (len(c.want) == 1) {
				t.Errorf("%s (%v), want %s", got, err, c.want)
			}
			var asked []string
			for _, line := range g.asked {
				id, rest, _ := strings.Cut(line, " ")
				asked = append(asked, id)
				if !strings.HasPrefix(rest, "/api/v1/stores/counts?key=a+b%2F%26") || !strings.HasSuffix(rest, " Bearer secret") {
					t.Errorf("asked %s", line)
				}
			}
			if got := strings.Join(asked, " "); !strings.HasPrefix(got, c.asked) {
				t.Errorf("asked %s, want %s", got, c.asked)
			}
			if name == "after a wait" && waits != 1 {
				t.Errorf("%d waits were told", waits)
			}
		})
	}
}

func TestAskEndsByItsContext(t *testing.T) {
	g := &peerGroup{t: t}
	g.add("a", 200, Failure{Message: "moving", Code: CodeMoving, Instance: "a", Task: "0_1"})
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cl := g.client(time.Hour)
	cl.Waiting = func(error, time.Duration) { cancel(stop) }
	if err := cl.Ask(ctx, "counts", url.Values{}, new(Answer)); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}
