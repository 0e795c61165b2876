package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// A command that is interrupted and typed again goes on with its job, and one that is typed after the end gives the result
// once more: each item is called once.
func TestTheSameCommandBuysNothingTwice(t *testing.T) {
	t.Parallel()
	const items = 1000
	for name, blow := range map[string]syscall.Signal{"interrupted": syscall.SIGINT, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{workers: 2, inFlight: 16, provider: slow})
			q := writePrompts(t, f.dir, "again", items)
			output := filepath.Join(f.dir, "out.jsonl")
			typed := func(n int) *process {
				p := f.process(fmt.Sprint("run", n), "run", q.path, "-o", output, "--cluster="+f.url(), "--base-url", f.judge.base("customer"), "--progress", "plain")
				p.start()
				return p
			}
			first := typed(1)
			<-f.judge.after(items / 10)
			first.signal(blow)
			if code := first.ends(comeUp); blow == syscall.SIGINT && code != 130 {
				t.Errorf("exit %d, want 130", code)
			}
			if code := f.finishes(typed(2)); code != 0 {
				t.Errorf("exit %d", code)
			}
			if err := os.Remove(output); err != nil {
				t.Fatal(err)
			}
			if code := f.finishes(typed(3)); code != 0 {
				t.Errorf("exit %d", code)
			}
			if n := linesOf(t, output); n != items {
				t.Errorf("%d results, want %d", n, items)
			}
			f.calledOnce(items)
		})
	}
}

// slow is a provider that lets a command be stopped in the middle.
var slow = sim.Config{Latency: sim.Latency{Median: 100 * time.Millisecond}}

// calledOnce fails the test unless so many prompts were called, each once.
func (f *fleet) calledOnce(items int) {
	f.t.Helper()
	times := map[string]int{}
	book := settled(f.t, f.judge)
	for i := range book {
		times[book[i].prompt]++
	}
	if len(book) != items || len(times) != items {
		f.t.Errorf("%d calls of %d prompts, want %d of both", len(book), len(times), items)
	}
}

// Of submissions that are the same and come at once one makes the job, and the others attach to it.
func TestTheSameSubmissionsAtOnceAreOneJob(t *testing.T) {
	t.Parallel()
	const items, at = 300, 4
	f := newFleet(t, plan{workers: 2, inFlight: 16, provider: slow})
	q := writePrompts(t, f.dir, "race", items)
	var customers []*process
	for n := range at {
		p := f.process(fmt.Sprint("customer", n), "submit", q.path, "-o", filepath.Join(f.dir, "out.jsonl"), "--cluster", f.url(), "--base-url", f.judge.base("customer"))
		p.start()
		customers = append(customers, p)
	}
	jobs := map[string]bool{}
	for _, p := range customers {
		if code := p.ends(comeUp); code != 0 {
			t.Errorf("exit %d", code)
		}
		jobs[f.jobOf(p)] = true
	}
	if len(jobs) != 1 {
		t.Errorf("%d jobs: %v", len(jobs), jobs)
	}
	for job := range jobs {
		f.run("jobs", "watch", job, "--cluster", f.url())
	}
	f.calledOnce(items)
}

// A job that has a name is submitted once. The same again attaches, other settings and another input are refused, and
// after its removal the name begins anew.
func TestANamedJobIsOne(t *testing.T) {
	t.Parallel()
	const items = 100
	f := newFleet(t, plan{workers: 1, inFlight: 16, provider: slow})
	q, other := writePrompts(t, f.dir, "named", items), writePrompts(t, f.dir, "other", items)
	submit := func(want int, says, input string, flags ...string) {
		t.Helper()
		p := f.process("submit-"+ports.next(), append([]string{
			"submit", input, "-o", filepath.Join(f.dir, "out.jsonl"), "--cluster", f.url(), "--base-url", f.judge.base("customer"), "--job", "nightly", "--wait",
		}, flags...)...)
		p.start()
		if code := f.finishes(p); code != want || !strings.Contains(string(p.lastWords()), says) {
			t.Errorf("exit %d, want %d, and no %q in\n%s", code, want, says, p.lastWords())
		}
	}
	submit(0, "100 results in", q.path)
	submit(0, "100 results in", q.path)
	submit(2, "--max-attempts 2", q.path, "--max-attempts", "2")
	submit(2, "other.in.jsonl", other.path)
	f.calledOnce(items)
	if text, code := f.run("jobs", "rm", "nightly", "--cluster", f.url()); code != 0 {
		t.Fatalf("jobs rm: exit %d: %s", code, text)
	}
	if err := os.Remove(filepath.Join(f.dir, "out.jsonl")); err != nil {
		t.Fatal(err)
	}
	submit(0, "100 results in", other.path)
	if n := len(settled(t, f.judge)); n != 2*items {
		t.Errorf("%d calls, want %d", n, 2*items)
	}
}
