package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// limit bounds each wait; nothing is expected to take so long.
const limit = 90 * time.Second

// browser is one that is shared by the tabs of a test.
func browser(t *testing.T) context.Context {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WindowSize(1440, 1000), chromedp.Flag("disable-gpu", true))
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			opts = append(opts, chromedp.ExecPath(path))
			break
		}
	}
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%v: install Chromium, e.g. apt-get install chromium", err)
	}
	return ctx
}

// tab is one page, and what went wrong in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	mistakes []string // errors, violations of the policy, and requests that go elsewhere
}

func newTab(t *testing.T, in context.Context, address string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(in)
	p := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range p.mistakes {
			t.Error(m)
		}
	})
	if err := chromedp.Listen(ctx, func(event any) {
		mistake := ""
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			mistake = "exception: " + e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "401") {
				mistake = "error: " + e.Entry.Text + " " + e.Entry.URL
			}
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, address) {
				mistake = "a request that leaves the instance: " + e.Request.URL
			}
		}
		if mistake != "" {
			p.mu.Lock()
			p.mistakes = append(p.mistakes, mistake)
			p.mu.Unlock()
		}
	}); err != nil {
		t.Fatal(err)
	}
	p.run(command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}), chromedp.Navigate(address))
	return p
}

// step is what is done in a tab.
type step = chromedp.Action[chromedp.Void]

// command is a step that sends a command of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func (p *tab) run(steps ...step) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// await waits until the expression is true. (What chromedp has for this is forbidden by the page's security policy.)
func (p *tab) await(what, expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(limit); p.text(expression) != "true"; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.shoot("timeout")
			p.t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// text evaluates an expression.
func (p *tab) text(expression string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// look sets the window and the theme of the system.
func (p *tab) look(width, height int64, scheme string) {
	p.t.Helper()
	p.run(chromedp.EmulateViewport(width, height),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		}))
}

// shoot saves what the page shows, down to its end.
func (p *tab) shoot(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "streamworker-screenshots")
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(dir, name+".png")
	if err := os.WriteFile(file, png, 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.t.Logf("screenshot: %s", file)
}

// fits fails if the page is wider than the window.
func (p *tab) fits(name string) {
	p.t.Helper()
	if over := p.text("document.documentElement.scrollWidth - innerWidth"); strings.TrimPrefix(over, "-") != "0" && !strings.HasPrefix(over, "-") {
		p.t.Errorf("%s: the page is %s pixels too wide", name, over)
	}
}

const (
	live     = `document.querySelector('#live').dataset.state === 'live'`
	states   = `[...document.querySelectorAll('#grid td.state span')].map((e) => e.textContent)`
	cells    = `document.querySelectorAll('#grid .cell[data-role=active]').length`
	progress = `[...document.querySelectorAll('#learners [role=progressbar]')].map((e) => Number(e.getAttribute('aria-valuenow')))`
)

// One instance of three is told to leave by keyboard, while the page is looked at in both themes and on a narrow screen.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	address := w.start("worker-1", "", "pool=green")
	w.start("worker-2", "", "pool=blue")
	w.start("worker-3", "", "pool=green")
	in := browser(t)
	p := newTab(t, in, address)
	p.look(1440, 1000, "light")
	shared := `[...document.querySelectorAll('#grid tbody tr')].map((e) => e.children[2].textContent)`
	p.await("three instances share the tasks", live+` && `+shared+`.length === 3 && `+shared+`.every((n) => Number(n) > 5)`)
	const words = 60_000
	w.load(words, 600)
	w.processed(address, words)
	p.await("three instances run all tasks", live+` && `+states+`.join() === 'running,running,running' && `+cells+` === 20 && !document.querySelector('#learners table')`)
	// The one of the others that has more of the tasks with much state.
	counting := func(id string) string {
		return `document.querySelectorAll('#grid .cell[data-role=active][data-at^="` + id + `/1_"]').length`
	}
	leaver := p.text(counting("worker-2") + ` > ` + counting("worker-3") + ` ? "worker-2" : "worker-3"`)
	if title := p.text("document.title"); title != "word-count · streamworker" {
		t.Errorf("title %q", title)
	}
	p.await("bad records show", `document.querySelector('#problems').textContent.includes('dead letter')`)

	// The grid is one stop for Tab; arrow keys go on from there, and the task that they are at is told below.
	p.run(chromedp.Focus(chromedp.CSS("#grid .cell[tabindex='0']")))
	first := p.text(`document.querySelector('#detail').textContent`)
	p.run(chromedp.KeyEvent(kb.ArrowRight))
	if second := p.text(`document.querySelector('#detail').textContent`); !strings.HasPrefix(first, "Task ") || !strings.HasPrefix(second, "Task ") || first == second {
		t.Errorf("the arrow key leads from %q to %q", first, second)
	}
	if n := p.text(`document.querySelectorAll("#grid .cell[tabindex='0']").length`); n != "1" {
		t.Errorf("%s cells are stops for Tab", n)
	}

	// Escape sends nothing; the focus is on the harmless button.
	button := `#grid [data-instance="` + leaver + `"]`
	p.run(chromedp.Focus(chromedp.CSS(button)), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("#order")))
	if on := p.text("document.activeElement.id"); on != "order-no" {
		t.Errorf("the focus is on %q", on)
	}
	p.shoot("confirm")
	p.run(chromedp.KeyEvent(kb.Escape))
	p.await("the dialog is closed", `!document.querySelector('#order').open`)

	p.run(chromedp.Focus(chromedp.CSS(button)), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("#order")),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	p.await(leaver+" drains", states+`.some((s) => s.startsWith('draining'))`)
	p.await("learners are under way", progress+`.some((n) => n > 25 && n < 100)`)
	p.await("a task has changed hands with a gap", `document.querySelector('#handovers .gap span:not(.none)') !== null`)
	for _, scheme := range []string{"light", "dark"} {
		p.look(1440, 1000, scheme)
		p.shoot("drain-" + scheme)
		p.fits("wide " + scheme)
	}
	p.look(390, 844, "dark")
	p.await("the narrow form", `document.querySelector('#grid .wrapped') !== null`)
	p.shoot("drain-narrow")
	p.fits("narrow")

	p.look(1440, 1000, "light")
	p.run(chromedp.Click(chromedp.CSS("#theme")), chromedp.Click(chromedp.CSS("#theme")))
	if theme := p.text("document.documentElement.dataset.theme"); theme != "dark" {
		t.Errorf("the switch leads to %q", theme)
	}
	p.run(chromedp.Click(chromedp.CSS("#theme")))
	p.await(leaver+" has left", states+`.join() === 'running,running' && `+cells+` === 20 && document.querySelector('#problems').textContent.includes('everything was handed over')`)
	p.shoot("drained-light")

	// More tabs than a browser keeps connections to one host.
	var tabs []*tab
	for range 12 {
		tabs = append(tabs, newTab(t, in, address))
	}
	for i, other := range tabs {
		other.await(fmt.Sprintf("tab %d of many is live", i), `(document.hidden || `+live+`) && document.querySelector('h1').textContent === 'word-count'`)
	}
}

// What an instance shows only to those who have its token.
func TestToken(t *testing.T) {
	w := newWorld(t)
	const token = "a-token-that-nobody-guesses"
	file := filepath.Join(w.dir, "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := w.start("worker-1", `, token_file: "`+file+`"`)
	p := newTab(t, browser(t), address)
	p.look(900, 700, "light")
	give := func(s string) {
		p.run(chromedp.WaitVisible(chromedp.CSS("#login")), chromedp.SendKeys(chromedp.CSS("#login input"), s+kb.Enter))
	}
	give("another-token-of-some-length")
	p.await("the token is refused", `document.querySelector('#login').open && document.querySelector('#login-error').textContent !== ''`)
	if shown := p.text("document.body.textContent"); strings.Contains(shown, "word-count") {
		t.Error("the application shows without the token")
	}
	p.shoot("login")
	give(token)
	p.await("the page is live", live+` && document.querySelector('h1').textContent === 'word-count'`)
	if shown := p.text("document.documentElement.outerHTML"); strings.Contains(shown, token) {
		t.Error("the token is in the page")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mistakes = slices.DeleteFunc(p.mistakes, func(m string) bool { return strings.Contains(m, "Unauthorized") })
}
