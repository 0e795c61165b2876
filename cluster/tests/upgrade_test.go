package tests

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A job that a newer program has written is left alone, and says why; those that this one
// knows go on beside it. When whoever can read it has come, it is there as it was.
func TestNewerJobsAreLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 2, inFlight: 32, provider: strict(5 * time.Second)})
	first := writeQuestions(t, filepath.Join(f.dir, "first.in.jsonl"), "first", 300)
	customer, output := f.customer(first, "first")
	f.delivers(first, customer, output)
	newer, before := f.newerJob(f.jobOf(customer))
	for _, w := range f.workers { // nobody tells them of it; whoever starts looks at all jobs
		w.kill()
		w.start()
	}
	second := writeQuestions(t, filepath.Join(f.dir, "second.in.jsonl"), "second", 10*rate)
	customer, output = f.customer(second, "second")
	f.delivers(second, customer, output)
	if v := f.judged(false); v.repeated != 0 {
		t.Errorf("%d calls repeated: the newer job was worked on", v.repeated)
	}
	if after, err := os.ReadFile(newer); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the newer job's record was changed: %v", err)
	}
	if said := f.saidByWorkers(); !strings.Contains(said, "newer headrace") {
		t.Errorf("nobody has said that there is a newer job: %s", said)
	}
}

// newerJob puts a job beside another as a newer program would have written it: with another
// format, and fields that nobody knows here.
func (f *fleet) newerJob(like string) (path string, text []byte) {
	f.t.Helper()
	old := filepath.Join(f.home, "jobs", like, "job-000000.json")
	text, err := os.ReadFile(old)
	if err != nil {
		f.t.Fatal(err)
	}
	const name = "20991231-235959-newr"
	text = bytes.ReplaceAll(text, []byte(like), []byte(name))
	changed := bytes.Replace(text, []byte(`"format": 1`), []byte(`"format":99,"unheard_of":{"x":1}`), 1)
	if bytes.Equal(changed, text) {
		f.t.Fatalf("%s has no format: %.200s", old, text)
	}
	path = filepath.Join(f.home, "jobs", name, "job-000000.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, changed, 0o644); err != nil {
		f.t.Fatal(err)
	}
	return path, changed
}

func (f *fleet) saidByWorkers() (all string) {
	for _, w := range f.workers {
		text, err := os.ReadFile(w.said)
		if err != nil {
			f.t.Fatal(err)
		}
		all += string(text)
	}
	return all
}
