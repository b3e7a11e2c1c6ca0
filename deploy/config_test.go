package deploy

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/streamworker/streamworker/pkg/config"
)

// The applications in chart, manifests and compose file are ones that streamworker reads, with what their containers set.
func TestConfigurationsLoad(t *testing.T) {
	env := map[string]string{"INSTANCE_ID": "worker-1", "ADMIN_TOKEN": strings.Repeat("x", config.MinToken)}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for _, file := range []string{
		"compose/words.yaml", "kubernetes/words.yaml", "helm/streamworker/ci/words-values.yaml", "helm/streamworker/ci/everything-values.yaml",
	} {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var holder struct { // of the application's file, if it is not that itself
			Config string            // in the chart's values
			Data   map[string]string // in a ConfigMap, the first document of the manifests
		}
		if err := yaml.Unmarshal(src, &holder); err != nil {
			t.Fatal(err)
		}
		text := cmp.Or(holder.Config, holder.Data["app.yaml"], string(src))
		c, err := config.Parse(file, []byte(text), lookup, config.Overrides{InstanceID: "words-0", StateDir: "/state"})
		if err != nil {
			t.Error(err)
			continue
		}
		if c.ScaleDownTimeout == 0 || c.Admin.Listen == "" || c.OnTerminate != config.Keep {
			t.Errorf("%s: scale_down_timeout %s, admin.listen %q, on_terminate %s", file, c.ScaleDownTimeout, c.Admin.Listen, c.OnTerminate)
		}
	}
}
