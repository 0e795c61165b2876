//go:build linux

package tests

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/provider/sim"
)

// Files that are added to an open job, while it is cut, while it runs and when all that was there has ended, are
// answered whole and once. No worker dies of one that it did not know.
func TestFilesAreAdded(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 3, inFlight: 32, provider: strict(time.Second)})
	file := func(n int) *questionnaire { return writePrompts(t, f.dir, fmt.Sprint("part", n), 4*rate) }
	customer, output := f.customer(file(0), "open", "--open")
	job := ""
	for job == "" && customer.running() {
		time.Sleep(20 * time.Millisecond)
		job = f.jobOf(customer)
	}
	items := 4 * rate
	add := func(n int, flags ...string) {
		t.Helper()
		q := file(n)
		items += q.items
		for text, n := range q.asked {
			f.audit.asked[text] += n
		}
		text, code := f.run(append([]string{"jobs", "add", job, q.path, "--cluster", f.url(), "--store", f.store}, flags...)...)
		if code != 0 {
			t.Fatalf("jobs add: exit %d: %s", code, text)
		}
	}
	add(1)
	add(2)
	<-f.judge.after(2 * rate)
	add(3)
	f.reaches(items, customer)
	add(4, "--close")
	f.finishes(customer)
	if n := linesOf(t, output) + linesOf(t, strings.TrimSuffix(output, ".jsonl")+".errors.jsonl"); n != items {
		t.Errorf("%d lines for %d items", n, items)
	}
	f.judged(false)
}

// writePrompts makes a prompt file whose lines have no ids: several may be of one job.
func writePrompts(t *testing.T, dir, tag string, items int) *questionnaire {
	t.Helper()
	q := &questionnaire{path: filepath.Join(dir, tag+".in.jsonl"), items: items, asked: map[string]int{}}
	var lines []byte
	for i := range items {
		text := fmt.Sprintf("%s: what comes after %d?", tag, i)
		q.asked[text] = 1
		lines = fmt.Appendf(lines, "{\"prompt\":%q,\"model\":\"m\"}\n", text)
	}
	if err := os.WriteFile(q.path, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	return q
}

// linesOf counts the lines of a file; one that is not there has none.
func linesOf(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte{'\n'})
}

// A job stops at the bounds of its user, with 4 and the command that goes on, whether or not who submitted it is there; it
// makes no further call, and goes on when it is resumed.
func TestAJobStopsAtItsBounds(t *testing.T) {
	t.Parallel()
	const items = 1500
	for name, c := range map[string]struct{ flags, says string }{
		"deadline": {"--deadline 5s", "its deadline (--deadline) was reached"},
		"failures": {"--max-failures 5", "items have failed, and --max-failures is 5"},
		"share":    {"--max-failures 5%", "items have failed, and --max-failures is 5%"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{workers: 2, inFlight: 4, provider: slow})
			path, output := filepath.Join(f.dir, "in.jsonl"), filepath.Join(f.dir, "out.jsonl")
			var lines []byte
			for i := range items {
				if bad := i%10 == 9; bad {
					lines = fmt.Appendf(lines, "{\"prompt\":\"refused %d\",\"model\":\"m\",\"max_tokens\":0.5}\n", i)
				} else {
					lines = fmt.Appendf(lines, "{\"prompt\":\"question %d\",\"model\":\"m\"}\n", i)
				}
			}
			if err := os.WriteFile(path, lines, 0o600); err != nil {
				t.Fatal(err)
			}
			typed := func(n int, flags ...string) *process {
				p := f.process(fmt.Sprint("submit", n), append([]string{
					"submit", path, "-o", output, "--cluster", f.url(), "--base-url", f.judge.base("customer"), "--chunk-lines", "20",
				}, flags...)...)
				p.start()
				return p
			}
			first := typed(1, strings.Fields(c.flags)...)
			if code := first.ends(comeUp); code != 0 {
				t.Fatalf("exit %d", code)
			}
			job := f.jobOf(first)
			f.run("jobs", "watch", job, "--cluster", f.url())
			second := typed(2, "--wait")
			if code := f.finishes(second); code != 4 || !strings.Contains(string(second.lastWords()), c.says) || !strings.Contains(string(second.lastWords()), "headrace jobs resume "+job) {
				t.Errorf("exit %d, want 4, and no %q in\n%s", code, c.says, second.lastWords())
			}
			if n := len(settled(t, f.judge)); n >= items {
				t.Errorf("%d calls for %d items: it did not stop", n, items)
			}
			if text, code := f.run("jobs", "resume", job, "--cluster", f.url()); code != 0 {
				t.Fatalf("jobs resume: exit %d: %s", code, text)
			}
			if code := f.finishes(typed(3, "--wait")); code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
			if n := linesOf(t, output) + linesOf(t, strings.TrimSuffix(output, ".jsonl")+".errors.jsonl"); n != items {
				t.Errorf("%d lines for %d items", n, items)
			}
		})
	}
}

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

// A limit that a worker's user sets holds from the first call, also while the job's first ten thousand chunks are being
// queued. It also holds from the first call of a keeper that knows nothing.
func TestConfiguredLimitHoldsFromTheFirstCall(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: sim.Config{Latency: sim.Latency{Median: 50 * time.Millisecond}}, limitFlags: []string{"--rpm", "60"}})
	q := writePrompts(t, f.dir, "many", 500_000)
	customer, _ := f.customer(q, "out", "--chunk-lines", "50")
	f.keepsToSixty(customer, "many", 25*time.Second)
	f.cancels(customer, "many")
}

// keepsToSixty fails the test if more calls than sixty a minute, and a burst of two, leave in the
// time after a job's first call.
func (f *fleet) keepsToSixty(customer *process, job string, measured time.Duration) {
	f.t.Helper()
	const perMinute, burst = 60, 2
	first := f.firstCall(job)
	waits(customer.over, first.Add(measured))
	calls := 0
	for _, c := range f.judge.book() {
		if c.at.Before(first.Add(measured)) {
			calls++
		}
	}
	f.t.Logf("%d calls in %v", calls, measured)
	late := f.late.allowance() // the first call may have come so late
	if most := perMinute*int((measured+late).Seconds())/60 + burst; calls > most {
		f.t.Errorf("%d calls in %v at %d a minute, want at most %d", calls, measured, perMinute, most)
	}
}

// A limit that is set before any worker is there is kept: it holds from the first call, whatever the worker's own setting.
func TestALimitIsSetWithoutAWorker(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{inFlight: 64, provider: sim.Config{Latency: sim.Latency{Median: 50 * time.Millisecond}}, limitFlags: []string{"--rpm", "60000"}})
	text, code := f.run("limits", "set", "org", "--rpm", "60", "--cluster", f.url())
	if want := "limit org is set, and kept in the store\n"; code != 0 || text != want {
		t.Fatalf("exit %d: %q, want %q", code, text, want)
	}
	w := f.newWorker("late")
	f.workers = append(f.workers, w)
	w.start()
	customer, _ := f.customer(writePrompts(t, f.dir, "few", 5000), "out")
	f.keepsToSixty(customer, "few", 15*time.Second)
	f.cancels(customer, "few")
}

// Messages that name an epoch which no keeper has, or a version that no keeper speaks, stop nobody: the job ends whole, and
// each worker goes on.
func TestFalseMessagesStopNobody(t *testing.T) {
	t.Parallel()
	const items, far = 600, 1 << 62
	f := troubled(t)
	f.begins("w1", nil)
	f.begins("w2", nil)
	q := writePrompts(t, f.dir, "some", items)
	customer, output := f.customer(q, "out", "--chunk-lines", "10")
	f.begun(20, customer)
	line, _, err := node.SplitHome(f.url())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Connect(context.Background(), bus.Config{URL: line, Name: "liar"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	job := f.jobNamed(customer)
	for range 10 {
		for what, err := range map[string]error{
			"wave":    b.SendCool(permit.Cool{Version: permit.Version, Limit: "org", Epoch: far, Wave: 1}),
			"ask":     b.SendAsk(permit.Ask{Version: permit.Version, Worker: "liar", Job: job, Limit: "org", Seq: 1, Epoch: far}),
			"version": b.Say(bus.Keeper, "liar", bus.Picture{Version: permit.Version + 1, Epoch: far}),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.delivers(q, customer, output)
	for _, w := range f.workers {
		if !w.running() {
			t.Errorf("%s has ended: %s", w.name, w.lastWords())
		}
	}
	f.judged(false)
}

// Three processes and one make the same files, but for times and attempts.
func TestThreeProcessesAreOne(t *testing.T) {
	flags, rpm := silent(5 * time.Second)
	for name, p := range map[string]plan{
		"headers":  {provider: strict(time.Second)},
		"told":     {provider: flags, limitFlags: rpm},
		"no limit": {provider: sim.Config{Latency: sim.Latency{Median: 20 * time.Millisecond}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.workers, p.inFlight = 3, 64
			f := newFleet(t, p)
			q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "equal", 2000)
			customer, output := f.customer(q, "out", "--chunk-lines", "100")
			f.delivers(q, customer, output)
			if v := f.judged(false); v.repeated != 0 {
				t.Errorf("%d calls repeated in a calm", v.repeated)
			}
		})
	}
}

// The example runs as it stands, on other ports; and a worker that is killed while it runs, as
// it says one may be, costs nothing.
func TestLaptop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	results := filepath.Join(dir, "results.jsonl")
	p := newProcess(t, dir, "laptop", "../../examples/cluster/laptop.sh", "../../examples/prompts.jsonl", results)
	p.env = append(p.env, "HEADRACE="+command(t), "PROVIDER="+freePort(t), "HUB="+freePort(t), "TMPDIR="+dir)
	p.start()
	killed := workerOf(t, p)
	time.Sleep(time.Second) // at whatever it is
	_ = syscall.Kill(killed, syscall.SIGKILL)
	if code := p.ends(2 * time.Minute); code != 0 {
		t.Errorf("exit %d", code)
	}
	lines, err := normalFile(results)
	if err != nil || len(lines) != 240 || len(surplus(lines, unique(lines))) > 0 {
		t.Errorf("%d results of 240 prompts, %d different: %v", len(lines), len(unique(lines)), err)
	}
}

// workerOf is the process of the first worker, as the script prints it.
func workerOf(t *testing.T, p *process) (pid int) {
	t.Helper()
	for range 1000 {
		_, after, found := strings.Cut(string(p.lastWords()), "worker 1 is process ")
		if n, _ := fmt.Sscan(after, &pid); found && n == 1 {
			return pid
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("it has started no worker")
	return 0
}

func unique(lines []string) (once []string) {
	seen := map[string]bool{}
	for _, line := range lines {
		if !seen[line] {
			once = append(once, line)
		}
		seen[line] = true
	}
	return once
}
