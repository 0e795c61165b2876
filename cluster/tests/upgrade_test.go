//go:build linux

package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// versions lists the constants that rise from one program to the next, by file. In the newer program a job without a cap
// has a newer format, too.
var versions = map[string][]struct{ is, becomes string }{
	"permit/message.go": {{"const Version = 1", "const Version = 2"}},
	"job/record.go":     {{"const RecordFormat = 2", "const RecordFormat = 3"}, {"const plainFormat = 1", "const plainFormat = 3"}},
}

// buildNewer makes the command as it will be once each version has risen by one.
func buildNewer(dir string) (string, error) {
	replaced := map[string]string{}
	for file, constants := range versions {
		path, err := filepath.Abs(filepath.Join("..", file))
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		for _, c := range constants {
			if bytes.Count(text, []byte(c.is)) != 1 {
				return "", fmt.Errorf("%s has no %s", path, c.is)
			}
			text = bytes.Replace(text, []byte(c.is), []byte(c.becomes), 1)
		}
		replaced[path] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replaced[path], text, 0o600); err != nil {
			return "", err
		}
	}
	overlay := filepath.Join(dir, "newer.json")
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		return "", err
	}
	return buildIn("..", filepath.Join(dir, "headrace-newer"), "-overlay", overlay)
}

// newer is the newer command's file.
func newer(t *testing.T) string {
	t.Helper()
	bin, err := built.newer()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// A whole cluster is replaced by a newer one, process by process, while it works on a job: nothing is refused, lost or
// asked again, and the newer one has jobs of its own then.
func TestAClusterIsUpgradedAtWork(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: strict(5 * time.Second)})
	after := newer(t)
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "upgrade", 15*rate)
	customer, output := f.customer(q, "out", "--chunk-lines", "150")
	f.begun(rate, customer)
	for _, w := range f.workers {
		f.replaceWorker(w, after)
		f.begun(f.judge.asked()+rate/2, customer)
	}
	end := f.strikeHub(f.hubs[0], step{harm: killing})
	f.hubs[0].args[0] = after
	end()
	f.delivers(q, customer, output)
	f.command = after
	next := writeQuestions(t, filepath.Join(f.dir, "next.in.jsonl"), "next", 2*rate)
	customer, output = f.customer(next, "next")
	f.delivers(next, customer, output)
	if v := f.judged(false); v.repeated != 0 {
		t.Errorf("%d calls repeated, though everybody finished what was in flight", v.repeated)
	}
}

// replaceWorker ends a worker softly, and starts another program in its place.
func (f *fleet) replaceWorker(w *worker, command string) {
	f.t.Helper()
	w.struck = true
	w.signal(syscall.SIGTERM)
	w.ends(comeUp)
	w.args[0] = command
	w.start()
	w.struck = false
}

// An older worker says that there is a newer job, leaves it alone, and does what it can read. A newer worker waits for
// a keeper that speaks as it does; when there is one, the newer job is done, and the older worker waits.
func TestOlderAndNewerSideBySide(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 2, inFlight: 64, provider: strict(5 * time.Second)})
	older, after := f.command, newer(t)
	first := writeQuestions(t, filepath.Join(f.dir, "first.in.jsonl"), "first", rate)
	customer, output := f.customer(first, "first") // so that there is a keeper
	f.delivers(first, customer, output)
	f.command = after
	late := writeQuestions(t, filepath.Join(f.dir, "late.in.jsonl"), "late", 3*rate)
	waiting, lateOutput := f.customer(late, "late")
	third := f.newWorker("w3")
	third.start()
	f.workers = append(f.workers, third)
	third.says("another version")
	f.command = older
	second := writeQuestions(t, filepath.Join(f.dir, "second.in.jsonl"), "second", 4*rate)
	customer, output = f.customer(second, "second")
	f.delivers(second, customer, output)
	if said := f.saidByWorkers(); !strings.Contains(said, "newer headrace") || !waiting.running() {
		t.Errorf("nobody has left the newer job alone: %s", said)
	}
	for _, c := range f.judge.book() {
		if strings.HasPrefix(c.prompt, "late") || c.who == third.name {
			t.Fatalf("%s has asked %q", c.who, c.prompt)
		}
	}
	f.workers[1].struck = true
	f.workers[1].kill()
	f.replaceWorker(f.workers[0], after)
	f.workers[1].start()
	f.delivers(late, waiting, lateOutput)
	f.workers[1].says("another version")
	if v := f.judged(false); v.repeated != 0 {
		t.Errorf("%d calls repeated", v.repeated)
	}
}

// says waits until a process has said something.
func (p *process) says(words string) {
	p.t.Helper()
	for end := time.Now().Add(comeUp); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if text, err := os.ReadFile(p.said); err == nil && strings.Contains(string(text), words) {
			return
		}
	}
	p.t.Errorf("%s has not said %q", p.name, words)
}

// Workers leave a newer program's job alone, and say why; the jobs that they know go on. The newer job stays unchanged
// for a program that can read it.
func TestNewerJobsAreLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 2, inFlight: 32, provider: strict(5 * time.Second)})
	first := writeQuestions(t, filepath.Join(f.dir, "first.in.jsonl"), "first", 300)
	customer, output := f.customer(first, "first")
	f.delivers(first, customer, output)
	newer, before := f.newerJob(f.jobOf(customer))
	for _, w := range f.workers { // no message announces the job; a worker that starts looks at all jobs
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

// newerJob adds a job, next to another, as a newer program would have written it: with another format, and with
// unknown fields.
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
