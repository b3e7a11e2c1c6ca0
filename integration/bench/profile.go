package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/streamworker/streamworker/pkg/admin"
)

// Profiles are taken when a run has got going, the processor's over a while.
const (
	profileAfter = time.Second
	profileTime  = 2 * time.Second
)

// profile takes profiles of an instance of streamworker while it works. The function that it returns waits for them.
func (b *bench) profile(ctx context.Context, i instance) (wait func()) {
	w, ok := i.(workerInstance)
	if !ok || b.profiles == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if pause(ctx, profileAfter) != nil {
			return
		}
		for _, what := range []string{"heap", fmt.Sprintf("profile?seconds=%d", int(profileTime.Seconds())), "allocs"} {
			if err := b.takeProfile(ctx, w, what); err != nil && ctx.Err() == nil {
				b.log.Warn("no profile", "of", w.name, "what", what, "error", err)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// takeProfile writes one profile to a file that is named after the instance.
func (b *bench) takeProfile(ctx context.Context, w workerInstance, what string) error {
	local := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(w.dir, admin.SocketFile))
	}}}
	defer local.CloseIdleConnections()
	code, text, err := getWith(ctx, local, "http://instance/debug/pprof/"+what)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("HTTP status %d: %s", code, text)
	}
	if err := os.MkdirAll(b.profiles, 0o755); err != nil {
		return err
	}
	kind, _, _ := strings.Cut(what, "?")
	return os.WriteFile(filepath.Join(b.profiles, w.name+"."+kind+".pprof"), []byte(text), 0o644)
}
