package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/report"
	"github.com/headrace/headrace/internal/must"
)

// figures are those of a report that a test compares.
func (h *here) figures(line string) (r report.Report) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.must(0, line)), &r); err != nil {
		h.t.Fatal(err)
	}
	return r
}

// saysAllWhileRunning reports whether a report has what a store, a worker and a keeper say of the job under way.
func saysAllWhileRunning(r *report.Report) bool {
	j := r.Job
	return r.State == report.Running && r.Done > 0 && j != nil && j.State == "running" && j.OfParts == 4 && len(j.Workers) == 1 &&
		len(j.Limits) == 1 && j.Limits[0].Name == "org" && j.HeldBy != ""
}

// The report of a job is there before its input is read, while it runs, once it is canceled, and when it is done. Then it has
// the figures that headrace report has of the job's files. It leaves nothing but the report.
func TestReportOfAJob(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.hub()
	bad := func(n int) string {
		return fmt.Sprintf(`{"custom_id":"bad%d","method":"POST","url":"/v1/chat/completions","body":{"model":"sim","messages":[]}}`+"\n", n)
	}
	h.write("in.jsonl", questions(4)+bad(1)+questions(3)+bad(2)+questions(11))
	const flags = " --provider sim --sim-profile fast --limit-name org --price 1,2"
	h.must(0, "limits set org --rpm 20") // slow: the job is still under way when the reports come late
	name := strings.TrimSpace(h.must(0, "submit {}/in.jsonl -o {}/out.jsonl --chunk-lines 5 --max-cost 9"+flags))
	h.must(0, "jobs report "+name, "the input has not been read", "job "+name)
	h.worker("-c 8")
	running := h.figures("jobs report " + name + " --json")
	for tries := 0; tries < 50 && !saysAllWhileRunning(&running); tries++ { // a busy machine's reports of worker and keeper come late
		running = h.figures("jobs report " + name + " --json")
	}
	if !saysAllWhileRunning(&running) {
		t.Errorf("while it runs: %+v, job %+v", running, running.Job)
	}
	h.must(0, "jobs cancel "+name)
	h.must(0, "jobs report "+name+" {}/canceled.md")
	if text, err := os.ReadFile(filepath.Join(h.dir, "canceled.md")); err != nil || !strings.Contains(string(text), "The job is canceled") || !strings.Contains(string(text), "headrace jobs resume") {
		t.Errorf("%v\n%s", err, text)
	}
	h.must(0, "limits set org --rpm 60000")
	h.must(0, "jobs resume "+name)
	h.must(0, "jobs watch "+name+" --progress none")
	h.must(0, "jobs report "+name+" -o {}/done.html")
	page, err := os.ReadFile(filepath.Join(h.dir, "done.html"))
	if err != nil || len(page) > report.MaxBytes || !strings.Contains(string(page), "A cluster keeps no timeline") || !strings.Contains(string(page), "holds ✓") || !strings.Contains(string(page), "bad1") {
		t.Errorf("%v\n%s", err, page)
	}
	done := h.figures("jobs report " + name + " --json")
	h.must(0, "jobs fetch "+name)
	files := h.figures("report {}/out.jsonl --json")
	if done.Done != 18 || done.Failed != 2 || done.Spent.USD == nil || *done.Spent.USD != *files.Spent.USD || fmt.Sprint(done.Failures, done.Waits, done.Models) != fmt.Sprint(files.Failures, files.Waits, files.Models) || done.Spent.CapUSD == nil || *done.Spent.CapUSD != 9 {
		t.Errorf("%+v\n\n%+v", done, files)
	}
	h.must(exit.Usage, "jobs report "+name+" -o {}/in.jsonl", "want a name that ends in .html, .md or .json")
	h.must(exit.Usage, "jobs report "+name+" {}/x.md --json", "exclude each other")
	h.must(exit.Usage, "jobs report "+name+" {}/x.md -o {}/y.md", "name one file")
	h.must(exit.Usage, "jobs report none", "no job of that name")
	h.must(exit.Usage, "jobs report", "accepts between 1 and 2 arg(s)")
	var names []string
	for _, e := range must.Get(os.ReadDir(h.dir))(t) {
		names = append(names, e.Name())
	}
	if want := "[canceled.md done.html home hub in.jsonl out.errors.jsonl out.jsonl]"; fmt.Sprint(names) != want {
		t.Errorf("the folder has %v, want %s", names, want)
	}
}

// A job that has lost a part in the store has a report, which does not call it whole and names the command that asks again.
func TestReportOfAJobThatLostAPart(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.hub()
	h.worker("-c 8")
	h.write("in.jsonl", questions(10))
	name := strings.TrimSpace(h.must(0, "submit {}/in.jsonl -o {}/out.jsonl --provider sim --sim-profile fast --chunk-lines 5"))
	h.must(0, "jobs watch "+name+" --progress none")
	lost, err := filepath.Glob(filepath.Join(h.dir, "home", "jobs", "*", "parts", "*", "*"))
	if err != nil || len(lost) != 2 {
		t.Fatalf("%v %v", lost, err)
	}
	if err := os.Remove(lost[0]); err != nil {
		t.Fatal(err)
	}
	h.must(0, "jobs report "+name, "5 of 10 items answered", "no longer in the store", "headrace jobs resume "+name)
	if r := h.figures("jobs report " + name + " --json"); r.Proved != nil || r.Done != 5 {
		t.Errorf("%+v", r)
	}
}
