package scenario

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"
)

func TestPlot(t *testing.T) {
	s, err := Parse("drain & co", []byte(`
tasks: [{id: T1, size: 1GiB}, {id: T2, size: 4GiB}, T3]
members:
  "<S1>": [T1, T2]
  S2: [T3]
events:
  - leave: "<S1>"
  - settle: true
`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compare(s, both(t)...)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.Plot(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"<title>drain &amp; co</title>", "&lt;S1&gt; runs T1", "S2 learns T2", "51.20 s", "51.2 seconds"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if found := regexp.MustCompile(`(?i)(src|href)=|@import|url\(|fetch\(|XMLHttp|ZgotmplZ`).FindString(page); found != "" {
		t.Errorf("the page has %q: it must need nothing from elsewhere", found)
	}
	for _, want := range []string{"var uPlot=", "Permission is hereby granted", `"Tasks moved so far"`, `"name":"stable"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1) {
		if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
			t.Errorf("%v in %s", err, svg)
		}
	}
}
