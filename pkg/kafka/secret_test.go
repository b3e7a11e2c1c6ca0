package kafka_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/streamworker/streamworker/pkg/kafka"
)

func TestSecretsHide(t *testing.T) {
	const text = "s3cret"
	c := kafka.Connection{SASL: kafka.SASL{Password: text, Endpoint: kafka.TokenEndpoint{ClientSecret: text}}}
	var printed bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&printed, verb+verb+verb+"\n", c, &c, c.SASL.Password)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	printed.Write(asJSON)
	slog.New(slog.NewTextHandler(&printed, nil)).Info("a", "password", c.SASL.Password, "all", c)
	slog.New(slog.NewJSONHandler(&printed, nil)).Info("a", "password", c.SASL.Password, "all", c)
	if out := printed.String(); strings.Contains(out, text) || strings.Contains(out, fmt.Sprintf("%x", text)) || !strings.Contains(out, "(hidden)") {
		t.Errorf("printed: %s", out)
	}
	if c.SASL.Password.Reveal() != text || fmt.Sprint(kafka.Secret("")) != "" {
		t.Error("a secret is not what it was")
	}
}
