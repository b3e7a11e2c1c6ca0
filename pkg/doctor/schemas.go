package doctor

import (
	"context"

	"github.com/streamworker/streamworker/pkg/registry"
	"github.com/streamworker/streamworker/pkg/topology"
)

const checkSchemas = "schema registry"

// checked is a codec that writes by a schema.
type checked interface {
	// Check tells why nothing could be written, without registering anything.
	Check() error
}

// schemas checks whether the registry answers, and has what sinks write by.
func (d *Doctor) schemas(context.Context) {
	s := d.cfg.SchemaRegistry
	if len(s.URLs) == 0 {
		return
	}
	if err := registry.New(s).Reach(); err != nil {
		d.tell(checkSchemas, Failed, "%v", err)
		return
	}
	well := true
	for _, sub := range d.cfg.Topology.Subtopologies {
		for _, sink := range sub.Sinks {
			for _, serde := range []topology.Serde{sink.Key, sink.Value} {
				if c, ok := serde.Codec.(checked); ok {
					if err := c.Check(); err != nil {
						d.tell(checkSchemas, Failed, "topic %s: %v", sink.Topic, err)
						well = false
					}
				}
			}
		}
	}
	if s.SecretInClear() {
		d.tell(checkSchemas, Warning, "the password crosses the network in clear: use https in schema_registry.url")
	}
	if well {
		d.tell(checkSchemas, OK, "it answers, and has the schemas of all outputs or takes them")
	}
}
