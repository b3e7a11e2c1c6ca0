package draw

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamworker/streamworker/pkg/topology"
	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// TestDrawings compares drawings with files, "-rewrite" writes them anew: "topology" reads streams, the other commands draw it.
func TestDrawings(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var top *topology.Topology
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "topology":
				f := yamlnode.Parse("test.yaml", []byte(d.Input), nil)
				top = topology.Parse("app", f.Root().Map().Get("streams"))
				if err := f.Err(); err != nil {
					t.Fatal(err)
				}
				return ""
			case "dot":
				return DOT("app", top.Graph())
			case "mermaid":
				return Mermaid(top.Graph())
			default:
				image := SVG("app", top.Graph())
				wellFormed(t, image)
				_, drawing, _ := strings.Cut(image, "</defs>\n")
				return drawing
			}
		})
	})
}

// wellFormed reads an image as XML.
func wellFormed(t *testing.T, image string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(image)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the SVG is no XML: %v", err)
		}
	}
}

func TestWrap(t *testing.T) {
	for text, want := range map[string]string{
		"short":                         "short",
		"two words":                     "two words",
		"some more words":               "some more|words",
		"onewordthatisverylong":         "onewordtha|tisverylon|g",
		"aaaa bbbb cccc dddd eeee":      "aaaa bbbb|cccc dddd|eeee",
		strings.Repeat("aaaa bbbb ", 6): "aaaa bbbb|aaaa bbbb|aaaa bbbb|aaaa bbbb…",
	} {
		if got := strings.Join(wrap(text, 10), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
