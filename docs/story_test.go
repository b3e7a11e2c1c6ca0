package docs

import (
	"strings"
)

// stories run what documents show, in an order in which it makes sense.
var stories = map[string]func(*scene){
	"files":       filesAlone,
	"trial":       trialRun,
	"first steps": firstSteps,
	"drains":      drains,
	"swaps":       swaps,
	"stops":       stops,
}

// filesAlone needs no broker.
func filesAlone(s *scene) {
	s.run("topology words.yaml", "counts")
	s.run("topology app.yaml", "counts")
	s.run("test words.yaml", "1 case")
	s.run("test words.yaml --run 'any case'", "1 case")
	s.run("test words.yaml -o json", `"failed": 0`)
	s.run("test app.yaml", "1 case")
	s.run("test examples/*.yaml examples/jobs/*.yaml", "stock-levels.yaml  2 cases")
	s.run("test --input records.json words.yaml", `"tables":{"counts":{"be":1}}`)
	s.run("config check -c app.yaml", "instance_id: worker-1")
	s.run("config schema", `"$schema"`)
	s.run("topology examples/wordcount.yaml", "counts")
	s.run("simulate examples/scenarios/scale-down.yaml", "assigned")
	s.run("simulate examples/scenarios/eager-or-stable.yaml --compare eager,stable --plot compare.html", "stable")
	s.run("simulate examples/scaling/*.yaml --compare eager,stable -o summary", "skewed-sizes     stable")
	s.run("simulate examples/scaling/scale-out.yaml --compare eager,stable,eager+balancing_factor=4 --plot scale-out.html", "EAGER+BALANCING_FACTOR=4")
	s.run("simulate examples/scaling/scale-out.yaml examples/scaling/skewed-sizes.yaml examples/scaling/rolling-drain.yaml examples/scaling/flapping.yaml examples/scaling/crashes.yaml "+
		"--compare balancing_factor=2,balancing_factor=3,balancing_factor=4,balancing_factor=8 -o summary", "crashes        balancing_factor=8")
	s.run("simulate examples/scaling/zone-loss.yaml examples/scaling/flapping.yaml examples/scaling/crashes.yaml --compare file,standbys=1 -o summary", "zone-loss  standbys=1")
	s.run("simulate examples/scaling/host-swap.yaml --compare max_learners=1,max_learners=2,max_learners=4,max_learners=0 -o summary", "host-swap  max_learners=0")
	s.run("completion bash", "complete")
	s.run("completion zsh", "compdef")
	s.run("completion fish", "complete")
	s.run("man DIR", "man pages are in")
	for _, command := range s.program.commands {
		s.run(command+" --help", "Usage:")
	}
	s.ran.ran("COMMAND --help", "")
}

func trialRun(s *scene) {
	s.run("dev", `"ok":true`, "--for", "1s", "--rate", "200", "--leave-after", "300ms", "--join-after", "0", "-o", "json")
	s.run("dev -c FILE", `"ok":true`, "--for", "1s", "--rate", "200", "--leave-after", "300ms", "--join-after", "0", "-o", "json")
}

// firstSteps is the README's.
func firstSteps(s *scene) {
	s.run("doctor -c words.yaml --state-dir /tmp/words-1", "ok       topics")
	first := s.start("run -c words.yaml --instance-id worker-1 --state-dir /tmp/words-1")
	s.awaitRunning("word-count", "worker-1")
	s.awaitStored("be", "200", "query -c words.yaml --state-dir /tmp/words-1 counts be")
	second := s.start("run -c examples/wordcount.yaml --brokers localhost:9092 --state-dir /tmp/word-count", "--instance-id", "worker-2")
	s.awaitRunning("word-count", "worker-1", "worker-2")
	watch := s.start("status --brokers localhost:9092 --app word-count --watch")
	watch.interrupt("word-count: 2 instances, 8 tasks")
	watch.ends(0, "worker-2")
	s.run("leave --brokers localhost:9092 --app word-count --instance worker-1 --wait", "worker-1: drained")
	first.ends(10, "")
	second.interrupt("")
	second.ends(0, "")
}

// drains is what an operator does with an application while it runs.
func drains(s *scene) {
	s.run("doctor -c app.yaml", "ok       topics")
	s.run("doctor -c app.yaml -o json", `"ok": true`)
	here := s.start("run -c app.yaml")
	s.awaitRunning("words", "worker-1")
	second := s.worker("worker-2")
	blue := s.worker("worker-3", "--label", "pool=blue")
	s.awaitRunning("words", "worker-1", "worker-2", "worker-3")
	s.run("status -c app.yaml", "words: 3 instances")
	s.run("status --state-dir /var/lib/streamworker", "words: 3 instances")
	s.run("status --brokers kafka:9092 --app words -o json", `"app": "words"`)
	s.run("status --brokers $KAFKA --app $APP -o json", `"app": "words"`)
	s.run("probe ready -c app.yaml", "ok")
	s.run("probe live --state-dir /var/lib/streamworker", "ok")
	s.awaitStored("be", "200", "query -c app.yaml counts be")
	s.run("query -c app.yaml", "counts  string  int    4           -")
	s.run("query --brokers kafka:9092 --app words counts --prefix b --limit 10 -o json", `"key": "be"`)

	s.run("leave --brokers kafka:9092 --app words --selector pool=blue --wait", "worker-3: drained")
	blue.ends(10, "")
	s.run("leave --brokers kafka:9092 --app words --instance worker-2 --wait", "worker-2: drained")
	second.ends(10, "")
	second = s.worker("worker-2")
	s.awaitRunning("words", "worker-1", "worker-2")
	s.run("leave --brokers $KAFKA --app $APP --instance worker-2 --wait", "worker-2: drained")
	second.ends(10, "")
	s.worker("worker-2")
	s.awaitRunning("words", "worker-1", "worker-2")
	s.run("leave -c app.yaml --wait", "worker-1: drained")
	here.ends(10, "")
}

// swaps goes from one pool to another, and asks how large it should be.
func swaps(s *scene) {
	blue := s.worker("worker-1", "--label", "pool=blue")
	s.awaitRunning("words", "worker-1")
	s.run("advise --brokers kafka:9092 --app words", "words needs ")
	s.run("advise -c app.yaml -o json", `"instances":1,"leaving":0,"needed":`)
	swap := s.start("swap --brokers kafka:9092 --app words --from pool=blue --to pool=green")
	await(s.t, "the swap waits", func() bool { return strings.Contains(swap.said(), "waiting for pool=green: 0 running") })
	s.run("swap --brokers kafka:9092 --app words --from pool=blue --cancel", "worker-1: was not leaving")
	s.worker("worker-2", "--label", "pool=green")
	swap.ends(0, "worker-1: drained")
	blue.ends(10, "")
}

// stops ends the instance on this host in each way, and at last the application.
func stops(s *scene) {
	other := s.worker("worker-2")
	s.awaitRunning("words", "worker-2")
	for _, line := range []string{
		"stop -c app.yaml --how keep", "stop -c app.yaml --how release", "stop -c app.yaml --how drain", "stop --state-dir /var/lib/streamworker --how drain",
	} {
		here := s.start("run -c app.yaml")
		s.awaitRunning("words", "worker-1", "worker-2")
		s.run(line, "worker-1: ")
		here.ends(0, "")
	}
	s.run("stop --state-dir /var/lib/streamworker/worker-2 --how release", "worker-2: ")
	other.ends(0, "")
	s.run("reset -c app.yaml --store counts", "words-counts-changelog", "--yes")
	s.run("reset -c app.yaml --dry-run", "to be deleted")
	s.run("reset -c app.yaml", "words is reset", "--yes")
}

// awaitStored runs a query until it shows this value.
func (s *scene) awaitStored(key, value, line string) {
	s.t.Helper()
	await(s.t, key+" is "+value, func() bool {
		p := s.start(line)
		<-p.ended
		return p.cmd.ProcessState.ExitCode() == 0 && strings.Contains(p.said(), key+"   "+value+" ")
	})
}

// worker starts another instance of the application words.
func (s *scene) worker(id string, more ...string) *process {
	s.t.Helper()
	return s.start("run -c app.yaml --instance-id "+id+" --state-dir /var/lib/streamworker/"+id, more...)
}

// awaitRunning waits until exactly these instances share the tasks, and none is on the move.
func (s *scene) awaitRunning(app string, ids ...string) {
	s.t.Helper()
	await(s.t, app+" runs on "+strings.Join(ids, ", "), func() bool {
		out := s.output("status", "--brokers", s.brokers, "--app", app, "-o", "json")
		for _, id := range ids {
			if !strings.Contains(out, `{"id":"`+id+`","state":"running"`) {
				return false
			}
		}
		return strings.Count(out, `"state":`) == len(ids) && !strings.Contains(out, `"active":[]`) &&
			!strings.Contains(out, `"active":null`) && strings.Count(out, `"learning":[]`) == len(ids) && strings.Contains(out, `"id":"1_3"`)
	})
}
