package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Cluster is a Kafka of several nodes that replicate, each of which can be stopped and started again.
type Cluster struct {
	Kafka
	nodes []*Kafka
}

// OwnCluster starts a cluster for this test alone, with heaps that let several nodes share a small machine.
func OwnCluster(t testing.TB, nodes int) *Cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "streamworker-cluster-")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Kafka: Kafka{dir: dir}}
	for i := range nodes {
		c.nodes = append(c.nodes, &Kafka{dir: filepath.Join(dir, strconv.Itoa(i+1))})
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.kill(t)
		}
		os.RemoveAll(dir)
	})
	t.Setenv("KAFKA_HEAP", "-Xms128m -Xmx384m")
	out, err := c.script("cluster", dir, strconv.Itoa(nodes))
	if err != nil {
		t.Fatal(err)
	}
	c.Address = strings.TrimSpace(out)
	for i, address := range strings.Split(c.Address, ",") {
		c.nodes[i].Address = address
	}
	return c
}

// Nodes is their number. They are counted from 0; Kafka calls the first one 1.
func (c *Cluster) Nodes() int { return len(c.nodes) }

// KillNode ends a node by SIGKILL.
func (c *Cluster) KillNode(t testing.TB, i int) { c.nodes[i].kill(t) }

// StopNode ends a node by SIGTERM: it gives its partitions away first.
func (c *Cluster) StopNode(i int) error {
	_, err := c.nodes[i].script("down", c.nodes[i].dir)
	return err
}

// StartNode starts a node again on its data.
func (c *Cluster) StartNode(i int) error { return c.nodes[i].up() }

// NodePid is the process id of a node; false: it does not run.
func (c *Cluster) NodePid(i int) (int, bool) {
	text, err := os.ReadFile(filepath.Join(c.nodes[i].dir, "pid"))
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, err == nil
}

func (k *Kafka) kill(t testing.TB) {
	t.Helper()
	if _, err := k.script("kill", k.dir); err != nil {
		t.Error(fmt.Errorf("killing a broker: %w", err))
	}
}
