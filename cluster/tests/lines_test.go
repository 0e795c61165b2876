//go:build linux

package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/provider/sim"
)

// A questionnaire is a prompt file in which each form of line comes, and what is known of it.
type questionnaire struct {
	path  string
	items int
	// asked counts each question in the file: most once, but lines without an id may ask the
	// same thing.
	asked map[string]int
	// at holds the question of each line, by its number from 1.
	at map[int]string
}

const (
	// sameEvery-th lines ask what others ask, without an id. Their keys depend on how many came
	// before them in the whole file, which the reader of a part cannot know.
	sameEvery = 50
	// badEvery-th lines are refused by the provider for good, and go to the errors file.
	badEvery = 97
	// blankEvery-th lines are followed by one that is blank, so that items are not lines.
	blankEvery = 211
)

// writeQuestions makes a prompt file. The tag is in each question: it tells jobs apart.
func writeQuestions(t *testing.T, path, tag string, items int) *questionnaire {
	t.Helper()
	q := &questionnaire{path: path, items: items, asked: map[string]int{}, at: map[int]string{}}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	b := bufio.NewWriter(file)
	_, _ = b.WriteString("\uFEFF") // as some editors leave it
	number := 1
	for i := 1; i <= items; i++ {
		text := fmt.Sprintf("%s: what comes after %d? – «%c»", tag, i, rune('α'+i%20))
		if i%sameEvery == 0 {
			text = fmt.Sprintf("%s: what comes next, for the %d. time of asking?", tag, i%3)
		}
		q.asked[text]++
		q.at[number] = text
		line := inputLine(i, text)
		number += strings.Count(line, "\n")
		_, _ = b.WriteString(line)
	}
	if err := errors.Join(b.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return q
}

// inputLine is line i in one of the forms that a prompt file may have.
func inputLine(i int, text string) string {
	ending := "\n"
	if i%7 == 0 {
		ending = "\r\n"
	}
	if i%blankEvery == 0 {
		ending += "\n"
	}
	quoted, _ := json.Marshal(text)
	turns := fmt.Sprintf(`"messages":[{"role":"user","content":%s}]`, quoted)
	switch {
	case i%sameEvery == 0:
		return fmt.Sprintf(`{"prompt":%s,"model":"m"}%s`, quoted, ending)
	case i%badEvery == 0:
		return fmt.Sprintf(`{"custom_id":"bad-%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":0.5,%s}}%s`, i, turns, ending)
	case i%4 == 0:
		return fmt.Sprintf(`{"id":"item-%d","prompt":%s,"model":"m","temperature":0.%d}%s`, i, quoted, i%9, ending)
	case i%4 == 1:
		return fmt.Sprintf(`{"custom_id":"batch-%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m",%s}}%s`, i, turns, ending)
	case i%4 == 2:
		return fmt.Sprintf(`{"model":"m",%s,"metadata":{"n":%d,"of":"a form"}}%s`, turns, i, ending)
	}
	return fmt.Sprintf(`{"prompt":%s,"model":"m"}%s`, quoted, ending)
}

// dropped are the fields in which two runs over one input may differ, and no others: when the
// answer came and how often it was asked for, the provider's name for that one request, by
// which of the lanes it went, and the checksum of all this.
var dropped = [][]string{
	{"response", "request_id"},
	{"response", "body", "created"},
	{"headrace", "attempts"},
	{"headrace", "lane"},
	{"headrace", "queued_ms"},
	{"headrace", "waited_ms"},
	{"headrace", "latency_ms"},
	{"headrace", "sum"},
}

// normal is a line of a result or errors file without what may differ, with sorted fields.
func normal(line []byte) (string, error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber() // or large numbers that differ would look alike
	if err := d.Decode(&fields); err != nil {
		return "", fmt.Errorf("%w: %.200s", err, line)
	}
	for _, path := range dropped {
		if err := drop(fields, path); err != nil {
			return "", fmt.Errorf("%w: %.200s", err, line)
		}
	}
	if of, is := fields["headrace"].(map[string]any); is {
		delete(of, "output") // only failures of one process have it: parts of a job have no output yet
	}
	text, err := json.Marshal(fields)
	return string(text), err
}

// drop removes a field. That it is missing is a difference too, but for what a provider that
// did not answer could not send.
func drop(in map[string]any, path []string) error {
	for _, name := range path[:len(path)-1] {
		inner, is := in[name].(map[string]any)
		if !is {
			return nil
		}
		in = inner
	}
	last := path[len(path)-1]
	if _, there := in[last]; !there && path[0] == "headrace" {
		return fmt.Errorf("no %s", strings.Join(path, "."))
	}
	delete(in, last)
	return nil
}

// normalFile is a file's lines in their normal form. One that is not there has none.
func normalFile(path string) (lines []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return nil, fmt.Errorf("%s ends in the middle of a line", path)
	}
	for line := range bytes.Lines(text) {
		form, err := normal(line)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(lines)+1, err)
		}
		lines = append(lines, form)
	}
	return lines, nil
}

// shown bounds the differences that are printed.
const shown = 5

// differences between two files' lines, in words: nothing if they are equal, in order.
func differences(got, want []string) (found []string) {
	if len(got) != len(want) {
		found = append(found, fmt.Sprintf("%d lines, want %d", len(got), len(want)))
	}
	for name, n := range surplus(got, want) {
		found = append(found, fmt.Sprintf("%+d of %.300s", n, name))
	}
	slices.Sort(found)
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] && len(found) == 0 {
			found = append(found, fmt.Sprintf("the order differs from line %d on:\n%.300s\n%.300s", i+1, got[i], want[i]))
		}
	}
	return found[:min(shown, len(found))]
}

// surplus counts how often each line is there more often than it should be; less, if negative.
func surplus(got, want []string) map[string]int {
	n := map[string]int{}
	for _, line := range got {
		n[line]++
	}
	for _, line := range want {
		n[line]--
	}
	for line, surplus := range n {
		if surplus == 0 {
			delete(n, line)
		}
	}
	return n
}

// sameLines fails the test unless two outputs have the same lines in the same order, and their
// errors files the same lines in any, but for what is dropped.
func sameLines(t *testing.T, got, want string) {
	t.Helper()
	sameFile(t, got, want, func([]string) {})
	sameFile(t, journal.ErrorsPath(got), journal.ErrorsPath(want), slices.Sort[[]string])
}

// sameFiles fails the test unless the output and the errors file of a cluster are equal to those
// of one process, but for what is dropped. One process writes failures as they come; a cluster
// writes them in the order of the input.
func sameFiles(t *testing.T, got, want string) {
	t.Helper()
	sameLines(t, got, want)
	if at := lineNumbers(t, journal.ErrorsPath(got)); !slices.IsSorted(at) {
		t.Errorf("failures do not stand in the order of the input: lines %v", at[:min(shown, len(at))])
	}
}

func sameFile(t *testing.T, got, want string, order func([]string)) {
	t.Helper()
	a, err := normalFile(got)
	b, err2 := normalFile(want)
	if err := errors.Join(err, err2); err != nil {
		t.Error(err)
		return
	}
	order(a)
	order(b)
	for _, d := range differences(a, b) {
		t.Errorf("%s: %s", filepath.Base(got), d)
	}
}

// lineNumbers returns the places in the input of a file's lines.
func lineNumbers(t *testing.T, path string) (all []int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var l journal.Line
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l.Headrace.Line)
	}
	return all
}

// saved are the questions of the one job whose answers the store has, in journals or in parts, as files show it. What is
// taken away while it is looked at is in a part that is looked at later: those come last in a folder's
// order only by chance, so it is looked twice.
func (f *fleet) saved() map[string]bool {
	all := map[string]bool{}
	for range 2 {
		_ = filepath.WalkDir(filepath.Join(f.home, "jobs"), func(path string, entry fs.DirEntry, err error) error {
			// The folders are those of a job in the store, see package job.
			if err == nil && entry.Type().IsRegular() && (strings.Contains(path, "/work/") || strings.Contains(path, "/parts/")) {
				f.savedIn(path, all)
			}
			return nil // a missing file was deleted just now
		})
	}
	return all
}

// savedIn adds what one file has. A file that is being written has no name yet.
func (f *fleet) savedIn(path string, all map[string]bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	for line := range bytes.Lines(text) {
		var l journal.Line
		if json.Unmarshal(line, &l) != nil || l.Headrace.Line == 0 {
			continue // what stands around the results
		}
		all[f.given.at[l.Headrace.Line]] = true
	}
}

// Two runs of one process over a file with every form of line differ in what is dropped, and
// in nothing else: so whatever else differs between a cluster and one process is the cluster's.
func TestTwoRunsAreTheSame(t *testing.T) {
	dir := t.TempDir()
	bin, err := buildIn("../..", filepath.Join(dir, "headrace"))
	if err != nil {
		t.Fatal(err)
	}
	q := writeQuestions(t, filepath.Join(dir, "in.jsonl"), "twice", 1000)
	var outputs [2]string
	for i, latency := range []time.Duration{0, 10 * time.Millisecond} {
		j := newJudge(t, sim.Config{Latency: sim.Latency{Median: latency, Sigma: 0.4}, Headers: i == 1, RPM: 60 * 1000})
		outputs[i] = filepath.Join(dir, []string{"a", "b"}[i]+".jsonl")
		p := newProcess(t, dir, "run", bin, "run", q.path, "-o", outputs[i], "--order", "input", "--base-url", j.base("one"), "--progress", "none", "-c", "32")
		p.start()
		if code := p.ends(comeUp); code != 1 {
			t.Fatalf("exit %d, want 1: some lines are bad", code)
		}
		a := audit{asked: q.asked}
		if v := a.judge(settled(t, j)); v.repeated != 0 || v.calls < q.items {
			t.Errorf("%+v", v)
		}
		calls := j.asked()
		p.start()
		if code := p.ends(comeUp); code != 1 || j.asked() != calls {
			t.Errorf("once more: exit %d, %d calls", code, j.asked()-calls)
		}
	}
	sameLines(t, outputs[0], outputs[1])
	lines, err := normalFile(outputs[0])
	if bad := q.items / badEvery; err != nil || len(lines) < q.items-bad || len(lines) >= q.items {
		t.Errorf("%d results of %d items: %v", len(lines), q.items, err)
	}
}
