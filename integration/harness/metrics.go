package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Metrics is a setting that lets a process serve its metrics on a free port.
const Metrics = `admin: {listen: "127.0.0.1:0"}`

// Metric asks a running process, configured with Metrics, for a metric without labels.
func (p *Process) Metric(name string) (float64, error) {
	address := ""
	for _, e := range p.Events() {
		if e.Msg == "serving metrics and health" {
			address = e.Text("address")
		}
	}
	if address == "" {
		return 0, fmt.Errorf("%s has not said where it serves its metrics", p.Name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("%s has no metric %s", p.Name, name)
}
