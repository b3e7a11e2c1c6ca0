package doctor_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/streamworker/streamworker/pkg/doctor"
)

func TestSchemas(t *testing.T) {
	p := newPatient(t, fake(t).ListenAddrs())
	p.create(1, 1, nil, "-in", "-out", "-copy")
	registry := srfake.New()
	defer registry.Close()
	p.more = fmt.Sprintf(`
  - name: copy
    from: {topic: %[1]s-in, value: json}
    steps: [to: {topic: %[1]s-copy, value: avro}]
schema_registry: {url: %[2]q}
`, p.app, registry.URL())
	p.finds(doctor.Failed, "schema registry", "topic "+p.app+"-copy: subject "+p.app+"-copy-value: the schema registry has no such schema: register one")
	if _, _, err := registry.RegisterSchema(p.app+"-copy-value", sr.Schema{Schema: `"string"`}); err != nil {
		t.Fatal(err)
	}
	p.finds(doctor.OK, "schema registry", "it answers")
	registry.Close()
	p.finds(doctor.Failed, "schema registry", "refused")
}
