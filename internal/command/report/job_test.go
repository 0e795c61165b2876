package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/must"
)

// jobReport makes the report of a job with these lines.
func jobReport(t *testing.T, j *Job, lines ...[]byte) *Report {
	t.Helper()
	return must.Get(newJobReport(j, func(take func([]byte) error) error {
		for _, l := range lines {
			if err := take(l); err != nil {
				return err
			}
		}
		return nil
	}, began, time.UTC, "v0.0.0"))(t)
}

// The report of a job counts its lines as that of a run counts the same lines in files.
func TestReportOfAJobIsThatOfARun(t *testing.T) {
	s := newScene(t)
	var lines [][]byte
	for n := 1; n <= 40; n++ {
		lines = append(lines, line(n, nil))
	}
	bad := [][]byte{line(41, failed("invalid", "<b>no messages</b>")), line(42, failed("server", "down")), line(43, failed("server", "down"))}
	must.Do(t, os.WriteFile(s.output, bytes.Join(lines, nil), 0o600))
	s.failures(bad...)
	s.timeline = ""
	want := must.Get(newReport(s.facts))(t)
	items := 43
	got := jobReport(t, &Job{Name: "j", State: "done", Output: s.output, Errors: s.errors, Items: &items, Parts: 2, OfParts: 2, Whole: true}, append(lines, bad...)...)
	want.Items = &items
	want.Verdict, want.At, want.Proof, want.Proved, want.Job = want.verdict(), got.At, got.Proof, got.Proved, got.Job
	if text := string(want.JSON()); text != string(got.JSON()) {
		t.Errorf("%s\n\n%s", got.JSON(), text)
	}
	if got.Done != 40 || got.Failed != 3 || got.Proved == nil || !*got.Proved {
		t.Errorf("%s", got.JSON())
	}
}

// A report of a job says how far it is, what a cluster does not keep, and which commands go on. It does so in each form.
func TestReportOfAJobSaysHowItStands(t *testing.T) {
	items, most := 80, 5.0
	running := func() *Job {
		return &Job{
			Name: "night-ab12", State: "running", GoesOn: true, Parts: 1, OfParts: 4, Items: &items, CapUSD: &most, Ended: 27, InFlight: 3, HeldBy: "requests (sim)", Output: "out.jsonl", Input: "in.jsonl",
			Workers:  []JobWorker{{Name: "w-1", InFlight: 3, Concurrency: 64, Items: 21, Calls: 24, Refused: 2}, {Name: "w-2", CannotWork: "no key"}},
			Limits:   []JobLimit{{Name: "sim", Phase: "flowing", Pace: "10", HeldBy: "requests", Known: "600 requests/min (told)"}},
			Settings: []event.Setting{{Name: "system", From: "job"}},
		}
	}
	ended := func(state, why, next string) *Job {
		j := running()
		j.GoesOn, j.State, j.Why, j.Next, j.Workers, j.Limits = false, state, why, next, nil, nil
		return j
	}
	for name, c := range map[string]struct {
		job  *Job
		says []string
		not  []string
	}{
		"running": {running(), []string{
			"The job is running: these are the figures of its finished parts, 1 of 4.", "A cluster keeps no timeline of a job: there are no plots", "1 of 4 done", "3 calls in flight; with parts under way 27 items ended", "1 of 80 items answered, 1 failed",
			"not yet", "Now held back by: requests (sim).", "600 requests/min (told)", "no key", "headrace jobs fetch night-ab12 --partial", "once it is done: ", "headrace jobs retry-failed night-ab12", "--max-cost $5.00",
		}, []string{"There is no timeline of the runs", "same command"}},
		"stopped":  {ended("stopped", "its cap is reached", "headrace jobs resume night-ab12 --max-cost 10"), []string{"The job is stopped. Why: its cap is reached. To go on: headrace jobs resume night-ab12 --max-cost 10.", "none"}, []string{"Workers", "in flight"}},
		"canceled": {ended("canceled", "by hand", "headrace jobs resume night-ab12"), []string{"The job is canceled. Why: by hand."}, []string{"Workers"}},
		"no input": {&Job{Name: "n", State: "indexing", GoesOn: true}, []string{"the input has not been read", "job n", "No worker was heard."}, []string{"of 0 done"}},
	} {
		var lines [][]byte
		if c.job.OfParts > 0 {
			lines = [][]byte{line(1, nil), line(2, failed("invalid", "no messages"))}
		}
		r := jobReport(t, c.job, lines...)
		for form, text := range map[string]string{"page": r.HTML(), "text": strings.ReplaceAll(r.Markdown(), "\\", "")} {
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("%s, %s: no %q in\n%s", name, form, want, text)
				}
			}
			for _, no := range c.not {
				if strings.Contains(text[strings.Index(text, "The job"):], no) {
					t.Errorf("%s, %s: %q in\n%s", name, form, no, text)
				}
			}
		}
		var back Report
		if err := json.Unmarshal(r.JSON(), &back); err != nil || back.Job == nil || back.Job.Name != c.job.Name || (back.State == Running) != c.job.GoesOn {
			t.Errorf("%s: %v\n%s", name, err, r.JSON())
		}
	}
}

// The page of a job is small, however many workers and limits a cluster has and however long their words are. Nothing of
// them is markup.
func TestReportOfALargeJobIsSmall(t *testing.T) {
	evil := strings.Repeat("<script>x</script>", 100)
	j := &Job{Name: "j", State: "running", Why: evil, GoesOn: true, HeldBy: "x", Input: "in", Output: "out", OfParts: 1}
	for range 5000 {
		j.Workers = append(j.Workers, JobWorker{Name: evil, CannotWork: evil})
		j.Limits = append(j.Limits, JobLimit{Name: evil, Phase: "flowing", Known: evil})
	}
	var lines [][]byte
	for n := 1; n <= 300; n++ {
		lines = append(lines, line(n, failed(fmt.Sprintf("%s-%d", evil, n), evil)))
	}
	r := jobReport(t, j, lines...)
	if n := len(r.HTML()); n > MaxBytes || strings.Contains(r.HTML(), "<script") || !strings.Contains(r.HTML(), "4980 more workers") {
		t.Errorf("%d bytes\n%.3000s", n, r.HTML())
	}
	if n := len(r.JSON()); n > MaxBytes || len(r.Markdown()) > MaxBytes {
		t.Errorf("%d bytes of JSON", n)
	}
}

// A line that no journal has written, and a store that is away, end the report with an error.
func TestReportOfAJobThatCannotBeRead(t *testing.T) {
	away := errors.New("away")
	for _, want := range []error{away, journal.ErrDamaged} {
		_, err := newJobReport(&Job{}, func(take func([]byte) error) error {
			if err := take([]byte("{\"no\":\"line\"}\n")); errors.Is(want, journal.ErrDamaged) {
				return err
			}
			return away
		}, began, time.UTC, "v0.0.0")
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
