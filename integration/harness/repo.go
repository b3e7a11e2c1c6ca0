package harness

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Root is the root of the checkout, found from the working directory of the test.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			panic("no go.mod above the working directory: run the tests inside the checkout")
		}
		dir = parent
	}
}

// Binary is the streamworker to test.
func Binary() string { return filepath.Join(Root(), "bin", "streamworker") }

// Build makes the binary anew by make build.
func Build() error {
	cmd := exec.Command("make", "--no-print-directory", "build")
	cmd.Dir, cmd.Stdout, cmd.Stderr = Root(), os.Stdout, os.Stderr
	return cmd.Run()
}

// Unique is a name that no other test uses, e.g. "drain-k3x9m2pq".
func Unique(name string) string { return name + "-" + strings.ToLower(rand.Text()[:8]) }

// Until polls until the condition holds; it fails the test when that takes longer than limit.
func Until(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("after %v it is still not so that %s", limit, what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
