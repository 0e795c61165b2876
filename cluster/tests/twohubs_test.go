package tests

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Two hubs on one store would have every chunk worked on twice. The store names the hub of its queue: a worker, a job and
// a check that come by another one are refused with words, and nothing is called twice. A command names another hub; then
// the workers of the first end by themselves, and the second hub does all jobs.
func TestASecondHubIsRefusedUntilItTakesOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 1, inFlight: 8, provider: sim.Config{Latency: sim.Latency{Median: 150 * time.Millisecond}}})
	q := writePrompts(t, f.dir, "first", 800)
	customer, _ := f.customer(q, "first", "--chunk-lines", "20")
	f.begun(40, customer)

	first := f.hubs
	second := f.newHub(2)
	second.start()
	second.serves()
	f.hubs = []*hub{second}
	refused := f.newWorker("w2")
	refused.start()
	if code := refused.ends(comeUp); code != 2 || !says(refused.process, "another hub") || !says(refused.process, "take-over") {
		t.Errorf("a worker of a second hub ends with %d: %s", code, refused.lastWords())
	}
	other := writePrompts(t, f.dir, "second", 100)
	late, _ := f.customer(other, "refused")
	if code := late.ends(comeUp); code != 2 || !says(late, "another hub") {
		t.Errorf("a job for a second hub ends with %d: %s", code, late.lastWords())
	}
	if text, code := f.run("cluster", "check", "--cluster", f.url()); code != 1 || !strings.Contains(text, "another hub") {
		t.Errorf("check ends with %d: %s", code, text)
	}

	f.begun(f.judge.asked()+40, customer)
	if text, code := f.run("cluster", "take-over", "--cluster", f.url()); code != 0 {
		t.Fatalf("take-over ends with %d: %s", code, text)
	}
	old := f.workers[0]
	old.struck = true
	if code := old.ends(comeUp); code != 2 || !says(old.process, "another hub") {
		t.Errorf("the worker of the first hub ends with %d: %s", code, old.lastWords())
	}
	before := f.twice()
	f.workers = []*worker{f.newWorker("w3")}
	f.workers[0].start()
	rest, _ := f.customer(other, "second")
	if code := f.finishes(rest); code != 0 {
		t.Errorf("the job of the second hub ends with %d", code)
	}
	if code := f.finishes(customer); code != 0 {
		t.Errorf("the job of the first hub ends with %d", code)
	}
	if after := f.twice(); !maps.Equal(before, after) {
		t.Errorf("%d prompts were asked twice before the second hub took over, and %d in all", len(before), len(after))
	}
	f.hubs = append(f.hubs, first...)
}

// says reports whether a process has said something.
func says(p *process, text string) bool { return strings.Contains(string(p.lastWords()), text) }

// twice are the prompts that were asked more than once.
func (f *fleet) twice() map[string]int {
	all := map[string]int{}
	for _, c := range f.judge.book() {
		all[c.prompt]++
	}
	maps.DeleteFunc(all, func(_ string, n int) bool { return n < 2 })
	return all
}
