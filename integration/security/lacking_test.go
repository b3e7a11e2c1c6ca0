//go:build integration

package security

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/integration/harness"
)

// testLacking takes one right at a time away from a user who has all others: the output names what is refused,
// on what, and how to grant it.
func testLacking(t *testing.T, w *world) {
	acls := kadm.NewClient(w.Client(t))
	put := func(t *testing.T, b *kadm.ACLBuilder) {
		t.Helper()
		results, err := acls.CreateACLs(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	user := "User:" + limited
	put(t, kadm.NewACLs().ResourcePatternType(kadm.ACLPatternLiteral).Topics("*").Groups("*").TransactionalIDs("*").Operations(kmsg.ACLOperationAll).Allow(user).AllowHosts())
	type denial func(a *harness.App) (what *kadm.ACLBuilder, on string)
	topic := func(suffix string, op kmsg.ACLOperation) denial {
		return func(a *harness.App) (*kadm.ACLBuilder, string) {
			return kadm.NewACLs().Topics(a.Name + suffix).Operations(op), "topic " + a.Name + suffix
		}
	}
	for _, c := range []struct {
		name string
		deny denial
		want string
	}{
		{"describe input", topic("-in", kmsg.ACLOperationDescribe), "DESCRIBE"},
		{"read input", topic("-in", kmsg.ACLOperationRead), "READ"},
		{"write output", topic("-out", kmsg.ACLOperationWrite), "WRITE"},
		{"create changelog", topic("-counts-changelog", kmsg.ACLOperationCreate), "CREATE"},
		{"read changelog", topic("-counts-changelog", kmsg.ACLOperationRead), "READ"},
		{"write changelog", topic("-counts-changelog", kmsg.ACLOperationWrite), "WRITE"},
		{"create control topic", topic("-control", kmsg.ACLOperationCreate), "CREATE"},
		{"read control topic", topic("-control", kmsg.ACLOperationRead), "READ"},
		{"write control topic", topic("-control", kmsg.ACLOperationWrite), "WRITE"},
		{"group", func(a *harness.App) (*kadm.ACLBuilder, string) {
			return kadm.NewACLs().Groups(a.Name).Operations(kmsg.ACLOperationRead), "group " + a.Name
		}, "READ"},
		{"transactional id", func(a *harness.App) (*kadm.ACLBuilder, string) {
			return kadm.NewACLs().TransactionalIDs(a.Name + "-a").Operations(kmsg.ACLOperationWrite), "transactional id " + a.Name + "-a"
		}, "WRITE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.application(t, "SASL", w.ca()+", "+password("PLAIN", limited, plainPassword), "guarantee: exactly_once")
			what, on := c.deny(a)
			put(t, what.Deny(user).DenyHosts().ResourcePatternType(kadm.ACLPatternLiteral))
			p := a.Start("a")
			want := []string{c.want, on, "kafka-acls"}
			found := func() bool {
				for line := range strings.Lines(p.Output()) {
					all := true
					for _, text := range want {
						all = all && strings.Contains(line, text)
					}
					if all {
						t.Log(strings.TrimSpace(line))
						return true
					}
				}
				return false
			}
			harness.Until(t, limit, fmt.Sprintf("a line of the output has %q", want), found)
		})
	}
}
