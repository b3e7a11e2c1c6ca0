//go:build integration && linux

package chaos

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// meter adds up the processor time of groups of processes, to show that a run was not one of an overloaded machine.
type meter struct {
	stop, stopped chan struct{}

	mu    sync.Mutex
	pids  map[int]string // their group
	last  map[int]float64
	used  map[string]float64 // seconds
	peak  map[string]float64 // cores, over a second
	begun time.Time
}

// ticks a second, in which /proc counts.
const userHz = 100

func newMeter() *meter {
	m := &meter{stop: make(chan struct{}), stopped: make(chan struct{}), pids: map[int]string{}, last: map[int]float64{},
		used: map[string]float64{}, peak: map[string]float64{}, begun: time.Now()}
	m.follow(os.Getpid(), "load and proxies")
	go func() {
		defer close(m.stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		before := time.Now()
		for {
			select {
			case <-m.stop:
				return
			case now := <-tick.C:
				m.sample(now.Sub(before).Seconds())
				before = now
			}
		}
	}()
	return m
}

// follow counts a process from now on.
func (m *meter) follow(pid int, group string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	used, _ := processTime(pid)
	m.pids[pid], m.last[pid] = group, used
}

func (m *meter) sample(seconds float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := map[string]float64{}
	for pid, group := range m.pids {
		used, ok := processTime(pid)
		if !ok {
			delete(m.pids, pid)
			continue
		}
		now[group] += used - m.last[pid]
		m.last[pid] = used
	}
	for group, n := range now {
		m.used[group] += n
		m.peak[group] = max(m.peak[group], n/seconds)
	}
}

// end returns what was used.
func (m *meter) end() string {
	close(m.stop)
	<-m.stopped
	elapsed := time.Since(m.begun).Seconds()
	var parts []string
	total := 0.0
	for _, group := range []string{"instances", "brokers", "load and proxies"} {
		parts = append(parts, fmt.Sprintf("%s %.2f cores (at most %.2f in a second)", group, m.used[group]/elapsed, m.peak[group]))
		total += m.used[group]
	}
	return fmt.Sprintf("%.2f cores of processor time: %s", total/elapsed, strings.Join(parts, ", "))
}

// processTime is the processor time that a process has used, in seconds.
func processTime(pid int) (float64, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(stat, ')') // the name may have blanks
	if err != nil || end < 0 {
		return 0, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 13 {
		return 0, false
	}
	user, uerr := strconv.ParseFloat(fields[11], 64)
	system, serr := strconv.ParseFloat(fields[12], 64)
	return (user + system) / userHz, uerr == nil && serr == nil
}
