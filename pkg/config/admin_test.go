package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadToken(t *testing.T) {
	const token = "correct-horse-battery-staple"
	file := filepath.Join(t.TempDir(), "token")
	for content, ok := range map[string]bool{token + "\n": true, "": false, "short": false, token + "\n" + token: false} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadToken("admin.token_file", file)
		if ok && got != token || ok != (err == nil) {
			t.Errorf("%q: %q, %v", content, got, err)
		}
		if err != nil && content != "" && strings.Contains(err.Error(), strings.TrimSpace(content)) {
			t.Errorf("the message tells the content: %v", err)
		}
	}
	if _, err := ReadToken("admin.token_file", file+"x"); err == nil || !strings.Contains(err.Error(), "admin.token_file") {
		t.Errorf("no file: %v", err)
	}
}
