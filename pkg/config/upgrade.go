package config

import (
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// RebalanceMode says with whom the group is shared.
type RebalanceMode string

// The modes: streamworker alone, or plain consumers as well, which are being replaced or come back.
const (
	Incremental RebalanceMode = "incremental"
	Upgrading   RebalanceMode = "upgrading"
)

// Protocols of plain consumers from which a group can be upgraded. Only the first gives all topics' partitions of one
// number to one member.
const rangeProtocol = "range"

var plainProtocols = []string{rangeProtocol, "roundrobin", "sticky", "cooperative-sticky"}

// rebalance reads the mode and the protocols; together checks them when the topology is known.
func (r *reader) rebalance(m *yamlnode.Map) (together func()) {
	c := r.c
	mode, from := m.Get("rebalance_mode"), m.Get("upgrade_from")
	c.RebalanceMode = RebalanceMode(mode.Enum(string(Incremental), string(Incremental), string(Upgrading)))
	items := []yamlnode.Node{from}
	if from.IsList() {
		items = from.List()
	}
	for _, item := range items {
		for name := range strings.SplitSeq(item.String(""), ",") {
			switch name = strings.TrimSpace(name); {
			case name == "" || slices.Contains(c.UpgradeFrom, name):
			case slices.Contains(plainProtocols, name):
				c.UpgradeFrom = append(c.UpgradeFrom, name)
			default:
				item.Errorf("use some of "+strings.Join(plainProtocols, ", "), "%q is no protocol to upgrade from", name)
			}
		}
	}
	from.Become(nil)
	if len(c.UpgradeFrom) > 0 {
		from.Become(c.UpgradeFrom)
	}
	return func() {
		if c.RebalanceMode != Upgrading {
			return
		}
		if len(c.UpgradeFrom) == 0 {
			mode.Errorf("name it in upgrade_from; kafka-consumer-groups --describe --state shows it as the assignment strategy", "upgrading needs the protocol of the group's consumers")
		}
		other := slices.DeleteFunc(slices.Clone(c.UpgradeFrom), func(name string) bool { return name == rangeProtocol })
		if len(other) == 0 || c.Topology == nil { // the file has no lawful topology
			return
		}
		for _, s := range c.Topology.Subtopologies {
			if topics := s.Topics(); len(topics) > 1 {
				from.Errorf("upgrade by range alone, or stop all consumers of the group and start with rebalance_mode: incremental",
					"the tasks of subtopology %d each need one partition of %s, and %s assigns these apart", s.ID, strings.Join(topics, " and of "), other[0])
			}
		}
	}
}
