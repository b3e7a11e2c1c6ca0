package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/streamworker/streamworker/integration/harness"
)

// machine is where it was measured, and what.
type machine struct {
	CPU          string  `json:"cpu"`
	Cores        int     `json:"cores"`
	MemoryGiB    float64 `json:"memory_gib"`
	Kernel       string  `json:"kernel"`
	Go           string  `json:"go"`
	Java         string  `json:"java"`
	Broker       string  `json:"broker"`
	KafkaStreams string  `json:"kafka_streams"`
	Streamworker string  `json:"streamworker"`
}

// String is one sentence for each of what and where.
func (m machine) String() string {
	return fmt.Sprintf("%d cores of %s, %.1f GiB, Linux %s. Broker, loader and what is measured share them.\n"+
		"Kafka Streams %s on %s; streamworker %s built by %s; a broker of Kafka %s.",
		m.Cores, m.CPU, m.MemoryGiB, m.Kernel, m.KafkaStreams, m.Java, m.Streamworker, m.Go, m.Broker)
}

// thisMachine asks for all of it; what cannot be found is "unknown".
func thisMachine(ctx context.Context, admin *kadm.Client) machine {
	m := machine{
		CPU: procField("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Kernel: unknown, Go: runtime.Version(),
		Java: unknown, Broker: unknown, KafkaStreams: unknown, Streamworker: unknown,
	}
	if kib, err := strconv.ParseFloat(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		m.MemoryGiB = kib / (1 << 20)
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if text, err := exec.CommandContext(ctx, java(), "-version").CombinedOutput(); err == nil {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		m.Java = strings.TrimSpace(lines[len(lines)-1])
	}
	if jars, err := filepath.Glob(filepath.Join(peerDir(), "lib", "kafka-streams-*.jar")); err == nil && len(jars) == 1 {
		m.KafkaStreams = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "kafka-streams-"), ".jar")
	}
	if text, err := exec.CommandContext(ctx, harness.Binary(), "version").Output(); err == nil {
		m.Streamworker, _, _ = strings.Cut(strings.TrimSpace(strings.TrimPrefix(string(text), "streamworker")), "\n")
	}
	if versions, err := admin.ApiVersions(ctx); err == nil {
		for _, v := range versions {
			m.Broker = v.VersionGuess()
		}
	}
	return m
}

const unknown = "unknown"

// procField is the value of the first line "name : value" of a file.
func procField(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return unknown
	}
	for l := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

// loadAverage of the machine over the last minute.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}
