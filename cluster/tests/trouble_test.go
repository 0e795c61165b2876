//go:build linux

package tests

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// troubled is a fleet without workers whose calls take some time.
func troubled(t *testing.T) *fleet {
	t.Helper()
	return newFleet(t, plan{inFlight: 4, provider: sim.Config{Latency: sim.Latency{Median: 100 * time.Millisecond}}})
}

// begins starts a worker of a fleet.
func (f *fleet) begins(name string, change func(*worker), flags ...string) {
	f.t.Helper()
	w := f.newWorker(name, flags...)
	if change != nil {
		change(w)
	}
	f.workers = append(f.workers, w)
	w.start()
}

// jobNamed waits until a customer's job has its name.
func (f *fleet) jobNamed(customer *process) string {
	f.t.Helper()
	for range 500 {
		if text, err := os.ReadFile(customer.said); err == nil && strings.Contains(string(text), "\n") {
			return f.jobOf(customer)
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.t.Fatal("no job is submitted")
	return ""
}

// says waits until a command says something.
func (f *fleet) says(what string, args ...string) string {
	f.t.Helper()
	var text string
	for range 200 {
		if text, _ = f.run(append(args, "--cluster", f.url(), "--store", f.store)...); strings.Contains(text, what) {
			return text
		}
		time.Sleep(200 * time.Millisecond)
	}
	f.t.Fatalf("headrace %s does not say %q:\n%s", strings.Join(args, " "), what, text)
	return ""
}

// A job whose folder is deleted while it runs has ended: its calls cease, and another job has all workers.
func TestADeletedFolderEndsItsJob(t *testing.T) {
	t.Parallel()
	f := troubled(t)
	f.begins("w1", nil)
	f.begins("w2", nil)
	q := writePrompts(t, f.dir, "deleted", 20_000) // four minutes and more
	customer, _ := f.customer(q, "out", "--chunk-lines", "10")
	f.begun(20, customer)
	folder := filepath.Join(f.home, "jobs", f.jobNamed(customer))
	err := os.RemoveAll(folder)
	for range 100 { // while it is emptied the workers go on writing into it: then a person deletes it again
		if err == nil {
			break
		}
		err = os.RemoveAll(folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	if code := customer.ends(comeUp); code != 130 || !strings.Contains(string(customer.lastWords()), "was deleted") {
		t.Errorf("exit %d: %s", code, customer.lastWords())
	}
	other := writePrompts(t, f.dir, "other", 200)
	customer, output := f.customer(other, "out2", "--chunk-lines", "10")
	if code := f.finishes(customer); code != 0 || linesOf(t, output) != 200 {
		t.Errorf("exit %d: %s", code, customer.lastWords())
	}
	over := time.Now().Add(2 * time.Minute) // the scheduler looks for the folder once a minute
	for before := -1; before != f.judge.asked(); time.Sleep(3 * time.Second) {
		if before = f.judge.asked(); time.Now().After(over) {
			t.Fatal("calls of the deleted job go on")
		}
	}
}

// A worker that has no key, or cannot see the input, leaves the job to another, and holds none of its chunks; status, watch
// and check say which worker cannot, and why.
func TestAWorkerThatCannotLeavesTheJobToOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(f *fleet, w *worker)
		flags  []string
		why    string
	}{
		"no key":   {func(*fleet, *worker) {}, []string{"--api-key-env", "NO_SUCH_KEY"}, "NO_SUCH_KEY"},
		"no input": {func(f *fleet, w *worker) { w.cwd = f.t.TempDir() }, nil, "no object of that name is there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := troubled(t)
			f.begins("seeing", nil, "--ack-wait", "10m")
			f.says("WORKER", "limits", "ls") // or the blind one is the only worker, and the job stops
			f.begins("blind", func(w *worker) { c.change(f, w) }, append(c.flags, "--ack-wait", "10m")...)
			q := writePrompts(t, f.dir, "some", 1200)
			path := q.path
			q.path = "file:///proc/self/cwd/" + filepath.Base(path) // each process sees another folder there
			customer, output := f.customer(q, "out", "--chunk-lines", "10")
			q.path = path
			job := f.jobNamed(customer)
			f.says(c.why, "jobs", "status", job)
			f.says(c.why, "cluster", "check")
			f.delivers(q, customer, output)
			if text, err := os.ReadFile(customer.said); err != nil || !strings.Contains(string(text), c.why) {
				t.Errorf("%v, submit --wait says\n%s", err, text)
			}
			f.judged(false)
		})
	}
}

// An input that is deleted during a job stops the job, with the reason; when it is there again, the job is resumed and ends.
func TestADeletedInputStopsItsJob(t *testing.T) {
	t.Parallel()
	f := troubled(t)
	f.begins("w1", nil)
	f.begins("w2", nil)
	q := writePrompts(t, f.dir, "some", 2000)
	customer, _ := f.customer(q, "out", "--chunk-lines", "10")
	f.begun(20, customer)
	if err := os.Rename(q.path, q.path+".away"); err != nil {
		t.Fatal(err)
	}
	if code := customer.ends(comeUp); code == 0 {
		t.Error("a job without its input ends as if it were whole")
	}
	job := f.jobNamed(customer)
	f.says("no object of that name is there", "jobs", "status", job)
	if err := os.Rename(q.path+".away", q.path); err != nil {
		t.Fatal(err)
	}
	if text, code := f.run("jobs", "resume", job, "--cluster", f.url(), "--store", f.store); code != 0 {
		t.Fatal(text)
	}
	f.says(" done", "jobs", "status", job)
	f.judged(false)
}

// A quota that is used up on one of two accounts stops that account, and not the job.
func TestAQuotaStopsOneAccount(t *testing.T) {
	t.Parallel()
	f := troubled(t)
	f.judge.refuses = func(w http.ResponseWriter, who string) bool {
		if who != "poor" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`))
		return true
	}
	for _, name := range []string{"poor", "rich"} {
		f.begins(name, func(w *worker) { w.env = append(w.env, "OPENAI_API_KEY=sk-"+name+"-0123456789abcdef") }, "--api-key-env", "OPENAI_API_KEY")
	}
	q := writePrompts(t, f.dir, "some", 1500)
	customer, output := f.customer(q, "out", "--chunk-lines", "10", "--limit-name", "")
	f.says("has stopped: ", "limits", "ls")
	f.delivers(q, customer, output)
	f.judged(false)
}

// A part of a finished job that is deleted is named by fetch, and asked again, alone, when the job is resumed.
func TestALostPartIsNamedAndAskedAgain(t *testing.T) {
	t.Parallel()
	f := troubled(t)
	f.begins("w1", nil)
	q := writePrompts(t, f.dir, "some", 100)
	customer, output := f.customer(q, "out", "--chunk-lines", "10")
	f.delivers(q, customer, output)
	job := f.jobNamed(customer)
	parts, err := filepath.Glob(filepath.Join(f.home, "jobs", job, "parts", "*", "*"))
	if err != nil || len(parts) < 2 {
		t.Fatalf("%v %v", parts, err)
	}
	if err := os.Remove(parts[1]); err != nil {
		t.Fatal(err)
	}
	place := []string{"--cluster", f.url(), "--store", f.store}
	again := filepath.Join(f.dir, "again.jsonl")
	text, code := f.run(append([]string{"jobs", "fetch", job, "-o", again}, place...)...)
	if lost := filepath.ToSlash(strings.TrimPrefix(parts[1], f.home+"/")); code == 0 || !strings.Contains(text, lost) || !strings.Contains(text, "jobs resume "+job) {
		t.Errorf("%d: %s", code, text)
	}
	calls := f.judge.asked()
	if text, code := f.run(append([]string{"jobs", "resume", job}, place...)...); code != 0 {
		t.Fatal(text)
	}
	f.says(job+": done", "jobs", "status", job)
	if text, code := f.run(append([]string{"jobs", "fetch", job, "-o", again}, place...)...); code != 0 || linesOf(t, again) != 100 {
		t.Errorf("%d: %s", code, text)
	}
	if n := f.judge.asked() - calls; n == 0 || n > 20 {
		t.Errorf("%d calls for a part of ten lines", n)
	}
}

// A worker holds no more descriptors after many jobs than after a few.
func TestAWorkerDoesNotGrowWithJobs(t *testing.T) {
	t.Parallel()
	f := troubled(t)
	f.begins("w1", nil)
	open, done := 0, 0
	for _, jobs := range []int{2, 8} {
		var all []*process
		for range jobs {
			done++
			name := fmt.Sprint("j", done)
			q := writePrompts(t, f.dir, name, 40)
			customer, _ := f.customer(q, name, "--timeout", fmt.Sprint(done, "m")) // each asks otherwise
			all = append(all, customer)
		}
		for _, p := range all {
			if code := p.ends(comeUp); code != 0 {
				t.Fatalf("%s ends with %d", p.name, code)
			}
		}
		now := 0
		for range 100 { // the worker hears of the last end
			files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", f.workers[0].cmd.Process.Pid))
			if now = len(files); err != nil || open == 0 || now <= open+jobs {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("%d descriptors after %d jobs", now, done)
		if open > 0 && now > open+jobs { // 4 connections for each are 32
			t.Errorf("%d descriptors after %d jobs, and %d after the first", now, done, open)
		}
		open = now
	}
}
