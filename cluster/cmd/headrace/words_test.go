package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/report"
)

// counted is a provider that counts how often each prompt was asked.
type counted struct {
	mu    sync.Mutex
	asked map[string]int
}

func newCounted(t *testing.T) (c *counted, flags string) {
	t.Helper()
	c = &counted{asked: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Messages []struct{ Content string } }
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &asked)
		c.mu.Lock()
		for _, m := range asked.Messages {
			c.asked[m.Content]++
		}
		c.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","model":"small","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":0,"completion_tokens":5,"total_tokens":5}}`)
	}))
	t.Cleanup(s.Close)
	return c, " --base-url " + s.URL + "/v1 --model small --param max_tokens=5 "
}

func (c *counted) calls() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, times := range c.asked {
		n += times
	}
	return n
}

// prompts counts those that were asked, and how often the most frequent was.
func (c *counted) prompts() (n, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, times := range c.asked {
		most = max(most, times)
	}
	return len(c.asked), most
}

// stands is a look at a job, which listens to its workers for more than a second.
func (h *here) stands(name string) (s node.Standing) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.must(0, "jobs status "+name+" --json")), &s); err != nil {
		h.t.Fatal(err)
	}
	return s
}

// until looks at a job until it is so, with as many looks as the slowest machine needs.
func (h *here) until(name string, is func(*node.Standing) bool) (s node.Standing) {
	h.t.Helper()
	for range 60 {
		if s = h.stands(name); is(&s) {
			return s
		}
	}
	h.t.Fatalf("job %s is never so: %+v", name, s)
	return s
}

// A pause keeps all calls from leaving within seconds, on each worker and on one that comes later. Who waits for the job
// goes on waiting. When it is resumed it goes on, and each line is asked exactly once.
func TestAJobIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	const items = 600
	h := newHere(t)
	c, flags := newCounted(t)
	h.hub()
	h.worker("-c 4")
	h.worker("-c 4")
	h.write("in.jsonl", questions(items))
	h.must(0, "limits set org --rpm 1200")
	submit := "submit {}/in.jsonl -o {}/out.jsonl --limit-name org --chunk-lines 150" + flags // workers have all of it at hand
	name := strings.TrimSpace(h.must(0, submit))
	waited, out := make(chan int, 1), &said{}
	go func() { waited <- h.run(submit+" --wait", out, out, nil) }()
	h.until(name, func(*node.Standing) bool { return c.calls() > 10 })
	h.must(0, "jobs pause "+name, "job "+name+": paused, with ")
	before := -1
	h.until(name, func(s *node.Standing) bool { // a look that hears no worker, or hears it between two calls, shows none in flight, too
		was := before
		before = c.calls()
		return len(s.Workers) == 2 && s.InFlight == 0 && before == was
	})
	h.worker("-c 4")
	h.must(0, "jobs status "+name, "paused", "held by: paused")
	h.must(0, "jobs ls", "paused")
	h.must(0, "jobs report "+name, "The job is paused", "headrace jobs resume "+name)
	h.must(0, submit, "it is paused", "headrace jobs resume "+name)
	h.until(name, func(s *node.Standing) bool {
		return len(s.Workers) == 3 && s.Record.Paused && s.Record.State == job.Running
	})
	if after := c.calls(); after != before || after >= items {
		t.Errorf("%d calls at the pause, and %d after it", before, after)
	}
	h.must(0, "jobs limit "+name+" rpm=60000", "limits of org: rpm=1200 → rpm=60000")
	h.must(0, "jobs resume "+name, "job "+name+": ", " parts done")
	h.must(exit.Usage, "jobs resume "+name, "it is running")
	if code := <-waited; code != 0 {
		t.Errorf("submit --wait ends with %d\n%s", code, out)
	}
	if prompts, most := c.prompts(); prompts != items || most != 1 || len(h.resultsOf("out.jsonl")) != items {
		t.Errorf("%d prompts of %d were asked, one of them %d times", prompts, items, most)
	}
	h.must(exit.Usage, "jobs pause "+name, "it is done")
}

// A paused job can end by hand, with the word of a run, and go on after that. A pause while its input is not read yet
// holds from its first call on.
func TestAPausedJobIsDrained(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	c, flags := newCounted(t)
	h.hub()
	h.write("in.jsonl", questions(20))
	name := strings.TrimSpace(h.must(0, "submit {}/in.jsonl -o {}/out.jsonl --limit-name org"+flags))
	h.must(0, "jobs pause "+name, "paused")
	h.worker("-c 4")
	h.until(name, func(s *node.Standing) bool { return s.Record.State == job.Running && len(s.Workers) == 1 })
	h.stands(name)
	if n := c.calls(); n > 0 {
		t.Errorf("%d calls of a paused job", n)
	}
	h.must(0, "jobs drain "+name, "canceled")
	h.must(0, "jobs resume "+name)
	h.must(0, "jobs watch "+name+" --progress none", "done")
	if n := c.calls(); n != 20 {
		t.Errorf("%d calls", n)
	}
}

// A limit that is set for a job holds on its workers from then on, and limits that are not named stay: those that a person
// has set, and those that only a worker has.
func TestTheLimitOfAJobIsChanged(t *testing.T) {
	t.Parallel()
	const items = 400
	for kind, of := range map[string]struct{ worker, submit, set string }{
		"set by a person":    {"", "--limit-name org", "limits set org --rpm 60 --tpm 5000000"},
		"only by the worker": {"--rpm 60 --tpm 5000000", "", ""},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHere(t)
			c, flags := newCounted(t)
			h.hub()
			if of.set != "" {
				h.must(0, of.set)
			}
			h.worker("-c 8 " + of.worker)
			h.write("in.jsonl", questions(items))
			began := time.Now() // calls leave before submit returns
			name := strings.TrimSpace(h.must(0, "submit {}/in.jsonl -o {}/out.jsonl "+of.submit+flags))
			h.until(name, func(s *node.Standing) bool { return len(s.Limits) == 1 && c.calls() > 0 })
			if n, most := c.calls(), 20+int(time.Since(began).Seconds()); n > most {
				t.Errorf("%d calls under a limit of one a second, %d at most", n, most)
			}
			h.must(exit.Usage, "jobs limit "+name+" another rpm=1", `limit "another" is not of job`)
			h.must(0, "jobs limit "+name+" rpm=60000", "rpm=60 tpm=5000000 → rpm=60000 tpm=5000000")
			h.must(0, "jobs watch "+name+" --progress none", "done")
			if took := time.Since(began); took > items*time.Second/2 {
				t.Errorf("it took %v, as under the limit of before", took)
			}
			h.must(0, "jobs reset "+strings.TrimSpace(h.must(0, "submit {}/in.jsonl -o {}/other.jsonl --limit-name other"+flags)), "asked to reset limit other")
		})
	}
}

// A cap that is lowered stops a job: at once if as much is drawn, else when it is. It can be raised again, and the job goes
// on. Nothing is spent above it.
func TestTheMaxCostOfAJobIsChanged(t *testing.T) {
	t.Parallel()
	const items = 300 // of $5
	h := newHere(t)
	c, flags := newCounted(t)
	h.hub()
	h.worker("-c 4")
	h.worker("-c 4")
	h.write("in.jsonl", questions(items))
	h.must(0, "limits set org --rpm 1200")
	submit := func(output string) string {
		return "submit {}/in.jsonl -o {}/" + output + " --limit-name org --chunk-lines 10 --price 0,1000000" + flags
	}
	name := strings.TrimSpace(h.must(0, submit("out.jsonl")+" --max-cost 4000"))
	waited, out := make(chan int, 1), &said{}
	go func() { waited <- h.run(submit("out.jsonl")+" --max-cost 4000 --wait", out, out, nil) }()
	h.until(name, func(*node.Standing) bool { return c.calls() > 10 })
	h.must(0, "jobs max-cost "+name+" $5", "max-cost: $4,000 → $5.00", "stopped", "its cap (--max-cost) is reached: it was set to $5, and workers have drawn $")
	if code := <-waited; code != exit.Bound || !strings.Contains(out.String(), "its cap (--max-cost) is reached") {
		t.Errorf("submit --wait ends with %d\n%s", code, out)
	}
	h.until(name, func(s *node.Standing) bool { return s.InFlight == 0 })
	stopped := c.calls()
	const more = 100               // calls
	most := 5*(stopped+more) + 100 // and what the workers have drawn in vain
	h.must(0, fmt.Sprintf("jobs max-cost %s %d", name, most), "max-cost: $5.00 → ")
	if r := h.figures("jobs report " + name + " --json"); r.Spent.CapUSD == nil || *r.Spent.CapUSD != float64(most) || r.Job.State != "stopped" {
		t.Errorf("%+v", r.Spent)
	}
	h.must(exit.Usage, fmt.Sprintf("jobs resume %s --max-cost %d", name, most), "already: give more")
	h.must(0, "jobs resume "+name)
	h.until(name, func(s *node.Standing) bool { return s.Record.State == job.Stopped && s.InFlight == 0 })
	if n := 5 * c.calls(); n > most || c.calls() <= stopped {
		t.Errorf("calls for $%d under a cap of $%d; $%d before it", n, most, 5*stopped)
	}
	h.must(0, "jobs resume "+name+" --max-cost 9000")
	h.must(0, "jobs watch "+name+" --progress none", "done")
	if r := h.figures("jobs report " + name + " --json"); r.Done != items || r.State != report.Ended || *r.Spent.USD != 5*items {
		t.Errorf("%+v", r)
	}
	h.must(exit.Usage, "jobs max-cost "+strings.TrimSpace(h.must(0, submit("other.jsonl")))+" 7", "it was submitted without --max-cost")
}

// Words that a job does not take say what to do instead, and the others refuse arguments with the words of headrace ctl.
func TestWordsThatAJobDoesNotTake(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.must(0, "jobs --help", "pause", "drain", "limit", "max-cost", "reset", "report", "each worker has its own -c (concurrency)")
	for line, says := range map[string]string{
		"jobs concurrency j 5":   "concurrency: it is not of a job: each worker has its own -c",
		"jobs log-level j debug": "log-level: it is not of a job: each worker has its own log",
		"jobs max-cost j":        "want max-cost USD",
		"jobs max-cost j 0":      "want USD, more than 0",
		"jobs limit j rps=5":     `limit "rps=5" is not known: want rpm=N`,
		"jobs limit j":           "want limit [LANE] rpm=N",
		"jobs reset j a b":       "want reset [LANE]",
		"jobs pause":             "requires at least 1 arg",
	} {
		h.must(exit.Usage, line, says)
	}
}
