package tests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
