package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// elsewhere says for lines of other programs, and for commands that need more than a broker, what checks them: a test or a file of this repository.
// Each is a regular expression for the beginning of a line.
var elsewhere = []struct{ line, by, how string }{
	{`make (test|lint|race|sim|deploy-check|integration|browser|build)\b`, ".ci/run", "runs these targets"},
	{`make (demo|help|bench-peer|bench-compare)\b`, "Makefile", "TestNames finds the target; demo is the command dev, run in story_test.go"},
	{`make differential\b`, "integration/differential/differential_test.go", "is what it runs, and make integration too"},
	{`(STREAMWORKER_SIZE=large )?go test `, "docs/docs_test.go", "TestNames finds the tests and benchmarks"},
	{`bin/bench (-help|-only )`, "integration/bench/result_test.go", "the package of the command, with its flags"},
	{`go tool pprof `, "integration/bench/profile.go", "takes the profiles that Go's tool shows"},
	{`go run ./docs/tools/drawdrain `, "docs/tools/drawdrain/main_test.go", "draws a recorded run"},
	{`\.ci/run`, ".ci/run", "is what CI calls"},
	{`(install|systemd-sysusers|systemctl|echo STOP=)`, "TestUnitStartsAndStops", "runs the unit's own commands with such a STOP; TestUnitVerify has systemd read it"},
	{`docker (build|run)`, "TestDockerfile", "reads the image's steps, files and user"},
	{`(cd deploy/compose|\(umask 077; echo|docker (compose|wait))`, "TestCompose", "reads services, tokens and signals; TestComposeTokenFile the file with the token"},
	{`helm install`, "TestChart", "renders the chart with Helm's library"},
	{`kubectl apply -f deploy/kubernetes/autoscale-keda`, "TestAutoscalers", "reads what it scales, and by what"},
	{`kubectl (create|get) secret`, "TestManifestsNeedAToken", "reads where the token comes from"},
	{`curl -H "Authorization: Bearer \$TOKEN" https://`, "TestToken", "asks /metrics with this header"},
	{`curl -H "Authorization: Bearer \$TOKEN" "https://.*/api/v1/stores`, "TestQuery", "has commands that send such requests; pkg/query tests each parameter"},
	{`ssh -L`, "TestOtherOrigins", "asks a loopback address for localhost, as it arrives through a tunnel"},
	{`kafka-acls`, "TestSecurity", "reads these lines from the document and runs them on a Kafka with an authorizer"},
	{`kafka-topics --bootstrap-server localhost:9092 --create`, "deploy/compose/compose.yaml", "creates its topics by this command"},
	{`kafka-consumer-groups`, "TestResetElsewhere", "commits such offsets after a reset"},
	{`streamworker stop --how kubernetes`, "TestHowKubernetesWants", "asks an API server of its own"},
}

// tool begins lines of shell in blocks of code, which have other languages too.
var tool = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(?:make|go|bin/\w+|\.ci/run|scripts/\S+|docker|helm|kubectl|systemctl|systemd-\w+|install|echo|cd|\(umask|kafka-\w[\w-]*|curl|ssh|openssl) `)

// shown is a command line in a document, without "streamworker" in front.
type shown struct {
	document string
	line     string
	part     bool // named in a sentence, where the words that are the same everywhere are left out
}

var (
	fence       = regexp.MustCompile("^ *```")
	indented    = regexp.MustCompile(`^(?:    |\t)\s*\S`)
	atStart     = regexp.MustCompile(`^(?:bin/)?streamworker ([a-z-]+|-\S+)( |$)`)
	anywhere    = regexp.MustCompile(`(?:^|[ (/])streamworker ([a-zA-Z-].*)`)
	endOfLine   = regexp.MustCompile(` +[|>#&]|[;)]`)
	inSentence  = regexp.MustCompile("(?s)`(?:bin/)?streamworker ([a-zA-Z][^`]*)`")
	alternative = regexp.MustCompile(`\S+\|\S+`)
)

// code are the lines in blocks of code, those that end in a backslash with what follows them.
func code(text string) []string {
	var lines []string
	fenced, goesOn := false, false
	for line := range strings.SplitSeq(text, "\n") {
		if fence.MatchString(line) {
			fenced = !fenced
			continue
		}
		if !fenced && !indented.MatchString(line) {
			continue
		}
		line = strings.TrimSpace(line)
		if goesOn {
			lines[len(lines)-1] += " " + strings.TrimSuffix(line, `\`)
		} else {
			lines = append(lines, strings.TrimSuffix(line, `\`))
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return lines
}

// commandsShown are all command lines in documents. Lines of other programs are held against elsewhere.
func commandsShown(t *testing.T, commands []string) []shown {
	t.Helper()
	var all []shown
	add := func(s shown) {
		s.line = strings.Join(strings.Fields(s.line), " ")
		if alternatives := alternative.FindString(s.line); alternatives != "" {
			for one := range strings.SplitSeq(alternatives, "|") {
				all = append(all, shown{s.document, strings.Replace(s.line, alternatives, one, 1), s.part})
			}
			return
		}
		all = append(all, s)
	}
	known := func(line string) bool {
		first := strings.Fields(line)[0]
		return slices.Contains(commands, first) || first == "COMMAND"
	}
	for name, text := range documents(t) {
		for _, line := range code(text) {
			if m := anywhere.FindStringSubmatch(line); m != nil && known(m[1]) {
				if end := endOfLine.FindStringIndex(m[1]); end != nil {
					m[1] = m[1][:end[0]]
				}
				add(shown{document: name, line: m[1]})
			} else if atStart.MatchString(line) {
				t.Errorf("%s: there is no such command: %s", name, line)
			} else if tool.MatchString(line) && covered(line) == "" {
				t.Errorf("%s: nothing runs or checks this line; say in elsewhere what does: %s", name, line)
			}
		}
		for _, m := range inSentence.FindAllStringSubmatch(text, -1) {
			if words := strings.Fields(m[1]); !known(words[0]) {
				t.Errorf("%s: there is no such command: streamworker %s", name, m[1])
			} else if len(words) > 2 || len(words) == 2 && words[0] != "config" {
				add(shown{document: name, line: m[1], part: true})
			}
		}
	}
	return all
}

// covered says what checks a line that no story runs; "" if nothing does.
func covered(line string) string {
	for _, e := range elsewhere {
		if regexp.MustCompile(`^(?:` + e.line + `)`).MatchString(line) {
			return e.by
		}
	}
	return ""
}

// What elsewhere refers to exists, and each of its entries is needed.
func TestElsewhere(t *testing.T) {
	tests := testNames(t)
	var all strings.Builder
	for _, text := range documents(t) {
		all.WriteString(strings.Join(code(text), "\n") + "\n")
		for _, m := range inSentence.FindAllStringSubmatch(text, -1) {
			all.WriteString("streamworker " + m[1] + "\n")
		}
	}
	for _, e := range elsewhere {
		if !regexp.MustCompile(`(?m)^(?:` + e.line + `)`).MatchString(all.String()) {
			t.Errorf("no document has a line like %s", e.line)
		}
		if _, err := os.Stat(filepath.Join(root, e.by)); err != nil && !slices.Contains(tests, e.by) {
			t.Errorf("%s: neither a test nor a file is called %s (which %s)", e.line, e.by, e.how)
		}
	}
}

// Every command line that a document shows is run by one of the stories: with all its words, and more where a story says so.
func TestCommands(t *testing.T) {
	b := build(t)
	ran := new(ledger)
	t.Run("stories", func(t *testing.T) {
		for name, tell := range stories {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tell(newScene(t, b, ran))
				ran.told()
			})
		}
	})
	if ran.stories < len(stories) {
		t.Skip("not all stories were run")
	}
	lines := commandsShown(t, b.commands)
	if len(lines) < 30 {
		t.Fatalf("only %d command lines were found", len(lines))
	}
	for _, s := range lines {
		if !ran.has(s) && covered("streamworker "+s.line) == "" {
			t.Errorf("%s: no story runs: streamworker %s", s.document, s.line)
		}
	}
}

// program is the binary under test.
type program struct {
	path     string
	commands []string
}

func build(t *testing.T) *program {
	t.Helper()
	b := &program{path: filepath.Join(t.TempDir(), "streamworker")}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", b.path, "../cmd/streamworker").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	help, err := exec.CommandContext(t.Context(), b.path, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(help), "Available Commands:\n")
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		b.commands = append(b.commands, strings.Fields(line)[0])
	}
	if !slices.Contains(b.commands, "run") {
		t.Fatalf("commands were not found in: %s", help)
	}
	return b
}
