package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/exit"
)

// The same command again is the same job: it ends as it ended, keeps what it was submitted with, and is another job only if its input
// has changed, it starts over, or its job was deleted.
func TestTheSameCommandAgain(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.hub()
	h.worker("-c 8")
	bad := `{"custom_id":"bad","method":"POST","url":"/v1/chat/completions","body":{"model":"sim","messages":[]}}` + "\n"
	h.write("in.jsonl", questions(20)+bad)
	const submit = "submit {}/in.jsonl -o {}/out.jsonl --provider sim --sim-profile fast --wait"
	again := func(line string, says ...string) string {
		t.Helper()
		return strings.TrimSpace(h.must(exit.ItemsFailed, line, says...))
	}
	first := again(submit, "20 results in")
	for name, c := range map[string]struct{ flags, says string }{
		"as it was":          {"", "job " + first + " was submitted before, with the same input, settings and output: it is done"},
		"with a weight":      {" --weight 2", "it keeps what it was submitted with: --weight 2: it has 1"},
		"with --retry":       {" --retry-failed", "20 results in"},
		"where failures lie": {" --errors {}/elsewhere.jsonl", "20 results in"},
	} {
		if job := again(submit+c.flags, c.says); job != first {
			t.Errorf("%s: it is another job", name)
		}
	}
	if job := again(strings.TrimSuffix(submit, " --wait"), "20 results in"); job != first {
		t.Error("without --wait it is another job")
	}
	jobs := map[string]string{first: "first"}
	other := func(name, line string, says ...string) {
		t.Helper()
		job := again(line, says...)
		if jobs[job] != "" {
			t.Errorf("%s is the job of %s", name, jobs[job])
		}
		jobs[job] = name
	}
	other("another setting", submit+" --max-attempts 2 -o {}/tries.jsonl")
	other("another output", strings.Replace(submit, "out.jsonl", "other.jsonl", 1))
	other("a new start", submit+" --fresh", "20 results in")
	if _, err := os.Stat(filepath.Join(h.dir, "out.jsonl.bak")); err != nil {
		t.Error(err)
	}
	h.must(0, "jobs rm "+first) // it is not the job of the command any more
	fresh := again(submit)
	if jobs[fresh] != "a new start" {
		t.Errorf("after the new start it is the job of %q", jobs[fresh])
	}
	h.must(0, "jobs rm "+fresh)
	h.remove("out.jsonl", "out.errors.jsonl")
	other("after its removal", submit, "20 results in")
	path := filepath.Join(h.dir, "in.jsonl")
	if err := os.Chtimes(path, time.Time{}, time.Unix(1_700_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	h.remove("out.jsonl", "out.errors.jsonl")
	other("another input", submit, "the input has changed since job ")
}

// A job that was stopped says how to go on each time that its command is typed.
func TestTheSameCommandOfACanceledJob(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.hub()
	h.write("in.jsonl", questions(20))
	const submit = "submit {}/in.jsonl -o {}/out.jsonl --provider sim --sim-profile fast --job night"
	job := strings.TrimSpace(h.must(0, submit))
	if again := strings.TrimSpace(h.must(0, submit, "it is indexing")); again != job || !strings.HasPrefix(job, "night-") {
		t.Errorf("%s and %s", job, again)
	}
	h.must(0, "jobs cancel night", "canceled")
	if again := strings.TrimSpace(h.must(exit.Interrupted, submit, "headrace jobs resume "+job)); again != job {
		t.Errorf("%s and %s", job, again)
	}
	h.must(0, "jobs resume night")
	h.worker("-c 8")
	h.must(0, submit+" --wait", "20 results in")
	h.must(exit.Usage, submit+" --system brief", "job "+job+" was submitted with another input or setting: --system brief: it has none; give what it has, or another name")
	h.must(exit.Usage, submit+" --job Night", "small letters")
}

func (h *here) remove(names ...string) {
	h.t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(h.dir, name)); err != nil {
			h.t.Fatal(err)
		}
	}
}

// The list of jobs shows how far each is.
func TestTheListShowsProgress(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.hub()
	h.write("in.jsonl", questions(80))
	const submit = "submit {}/in.jsonl -o {}/out.jsonl --provider sim --sim-profile fast --chunk-lines 20 --job night"
	h.must(0, submit)
	h.must(0, "jobs ls", "PROGRESS", "  -\n")
	h.worker("-c 8")
	h.must(0, submit+" --wait", "80 results in")
	h.must(0, "jobs ls", "100 % (4 of 4 parts, 80 items)")
	var all []listedJob
	if err := json.Unmarshal([]byte(h.must(0, "jobs ls --json")), &all); err != nil || len(all) != 1 || all[0].Parts != 4 || all[0].Items != 80 || !strings.HasPrefix(all[0].Job, "night-") {
		t.Errorf("%v %+v", err, all)
	}
}
