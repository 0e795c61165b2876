package promptfile

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// ofFiles makes the desk's input of files next to its own, which it leaves out.
func (d *jobFixture) ofFiles(names ...string) {
	d.t.Helper()
	var all []Input
	for _, name := range names {
		in := must.Get(File(filepath.Join(d.dir, name)))(d.t)
		all = append(all, in)
	}
	var err error
	if d.cfg.Input, err = Join(byEnding, all...); err != nil {
		d.t.Fatal(err)
	}
}

func byEnding(name string) prompts.Format {
	if filepath.Ext(name) == ".csv" {
		return prompts.FormatCSV
	}
	return prompts.FormatJSONL
}

// severalFiles is a desk with three files, one of them a table.
func severalFiles(t *testing.T) *jobFixture {
	d := newFixture(t)
	d.cfg.Reader.DefaultModel = "m"
	write(t, filepath.Join(d.dir, "a.jsonl"), ask("a")+"\n"+`{"prompt":"p"}`+"\n")
	write(t, filepath.Join(d.dir, "b.csv"), "id,prompt\nb,p\n")
	write(t, filepath.Join(d.dir, "c.jsonl"), ask("c")+"\n"+`{"prompt":"p"}`+"\n")
	d.ofFiles("a.jsonl", "b.csv", "c.jsonl")
	return d
}

// places are the ids of a file's lines, with the file and the line that each names.
func places(t *testing.T, path string) (all []string) {
	t.Helper()
	gjson.ForEachLine(read(t, path), func(l gjson.Result) bool {
		all = append(all, strings.Join([]string{l.Get("custom_id").Str, filepath.Base(l.Get("headrace.file").Str), l.Get("headrace.file_line").Raw, l.Get("headrace.line").Raw}, " "))
		return true
	})
	return all
}

// Several files are one run: its lines name file and line, the same files again, in any order, have nothing to do,
// what failed is tried again, and a file more brings what is in it.
func TestSeveralFilesAreOneRun(t *testing.T) {
	d := severalFiles(t)
	d.answer = func(it *Item) (provider.Reply, error) {
		if it.ID == "b" || it.ID == "c" {
			return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: 400}
		}
		return good, nil
	}
	sums, asked, err := d.run()
	if err != nil || asked != "a line-000002 b c line-000006" || sums.Failed != 2 {
		t.Fatalf("asked %q, %+v, %v", asked, sums, err)
	}
	if got, want := places(t, d.out), []string{"a a.jsonl 1 1", "line-000002 a.jsonl 2 2", "line-000006 c.jsonl 2 6"}; !slices.Equal(got, want) {
		t.Errorf("results: %q", got)
	}
	if got, want := places(t, journal.ErrorsPath(d.out)), []string{"b b.csv 2 4", "c c.jsonl 1 5"}; !slices.Equal(got, want) {
		t.Errorf("errors: %q", got)
	}
	d.ofFiles("c.jsonl", "b.csv", "a.jsonl")
	if sums, asked, err = d.run(); err != nil || asked != "" || sums.EarlierDone != 3 || sums.EarlierFailed != 2 {
		t.Errorf("again: asked %q, %+v, %v", asked, sums, err)
	}
	write(t, filepath.Join(d.dir, "b2.jsonl"), ask("b2")+"\n")
	d.ofFiles("a.jsonl", "b.csv", "b2.jsonl", "c.jsonl")
	d.cfg.RetryFailed, d.answer = true, func(*Item) (provider.Reply, error) { return good, nil }
	if sums, asked, err = d.run(); err != nil || asked != "b b2 c" || d.progress().Failed != 0 {
		t.Errorf("once more: asked %q, %+v, %v", asked, sums, err)
	}
}

// With results in the order of the input they stand in the order of the files, also in a run that goes on.
func TestTheOrderOfSeveralFiles(t *testing.T) {
	d := severalFiles(t)
	d.ofFiles("c.jsonl")
	if _, _, err := d.run(); err != nil {
		t.Fatal(err)
	}
	d.cfg.InputOrder = true
	d.ofFiles("a.jsonl", "b.csv", "c.jsonl")
	if sums, _, err := d.run(); err != nil || !sums.Arranged {
		t.Errorf("%+v, %v", sums, err)
	}
	var ids []string
	for _, place := range places(t, d.out) {
		ids = append(ids, strings.Fields(place)[0])
	}
	if len(ids) != 5 || ids[0] != "a" || ids[2] != "b" || ids[3] != "c" {
		t.Errorf("%q", ids)
	}
}

// A change of any of the files during the run is reported, wherever it falls.
func TestAChangeOfOneOfSeveralFilesIsReported(t *testing.T) {
	for _, name := range []string{"a.jsonl", "c.jsonl"} {
		for _, late := range []bool{false, true} {
			d := severalFiles(t)
			d.cfg.Concurrency = 1
			job := d.open()
			must.Get(job.Plan())(t)
			edit := func() { appending(ask("new"))(t, filepath.Join(d.dir, name)) }
			if !late {
				edit()
			}
			_, err := job.Run(t.Context(), func(_ context.Context, it *Item) (provider.Reply, error) {
				if late && it.ID == "line-000006" {
					edit()
				}
				return good, nil
			})
			if fault := job.Close(); fault != nil || !errors.Is(err, ErrChanged) {
				t.Errorf("%s, late: %t: %v, %v", name, late, err, fault)
			}
		}
	}
}

// Bad lines of all files are listed in the order of the input, and an id that two files have names both; one that
// is skipped says in the errors file where it is.
func TestBadLinesOfSeveralFiles(t *testing.T) {
	d := severalFiles(t)
	write(t, filepath.Join(d.dir, "b.csv"), "id,prompt\n1,2,3\na,p\n")
	d.cfg.Reader.Name = "other"
	job := d.open()
	plan := must.Get(job.Plan())(t)
	must.Do(t, job.Close())
	got := strings.ReplaceAll(cmp.Or(plan.Fatal(false, false), &BadLines{}).Error(), d.dir+string(filepath.Separator), "")
	for _, want := range []string{"\nb.csv:2: 3 cells under 2 columns", "\nb.csv:3: custom_id \"a\" is already used on line 1 of a.jsonl"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	d.cfg.SkipBad = true
	if _, asked, err := d.run(); err != nil || asked != "a line-000002 c line-000007" {
		t.Errorf("asked %q, %v", asked, err)
	}
	if got, want := places(t, journal.ErrorsPath(d.out)), []string{"line-000004 b.csv 2 4", "a b.csv 3 5"}; !slices.Equal(got, want) {
		t.Errorf("errors: %q", got)
	}
}

// With a stream among them several inputs are one stream, which is read once and can be gone on with.
func TestAStreamAmongSeveralFiles(t *testing.T) {
	d := severalFiles(t)
	file, err := File(filepath.Join(d.dir, "a.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a line-000002 z", ""} {
		if d.cfg.Input, err = Join(byEnding, file, Stream("pipe", strings.NewReader(ask("z")))); err != nil || !d.cfg.Input.Stream {
			t.Fatal(err)
		}
		if _, asked, err := d.run(); err != nil || asked != want {
			t.Errorf("asked %q, %v, want %q", asked, err, want)
		}
	}
}

// No file of a run is its input, whichever of them; a file that is named twice is refused, by whatever name; one
// that goes away is said by its name, and all that are opened are closed.
func TestSeveralFilesAreKeptApart(t *testing.T) {
	d := severalFiles(t)
	d.cfg.Output = filepath.Join(d.dir, "c.jsonl")
	if _, err := Open(d.cfg); !errors.Is(err, journal.ErrSameFile) || !strings.Contains(err.Error(), "the output is the input") {
		t.Errorf("the output is the last input: %v", err)
	}
	link := filepath.Join(d.dir, "link.jsonl")
	must.Do(t, os.Symlink("a.jsonl", link))
	one, _ := File(filepath.Join(d.dir, "a.jsonl"))
	other, _ := File(link)
	if _, err := Join(byEnding, one, other); !errors.Is(err, journal.ErrSameFile) || !strings.Contains(err.Error(), "link.jsonl is named twice") {
		t.Errorf("a file twice: %v", err)
	}
	must.Do(t, os.Remove(filepath.Join(d.dir, "c.jsonl")))
	_, err := Scan(d.cfg.Input, d.cfg.Reader, nil, func(prompts.Request) {})
	if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "c.jsonl") {
		t.Errorf("a file is gone: %v", err)
	}
	open := 0
	for i := range d.cfg.Input.files {
		d.cfg.Input.files[i].open = func() (io.ReadCloser, error) {
			open++
			return closing{strings.NewReader("prompt\n{}\n"), func() { open-- }}, nil
		}
	}
	if _, err := Scan(d.cfg.Input, d.cfg.Reader, nil, func(prompts.Request) {}); err != nil || open != 0 {
		t.Errorf("%d files stay open, %v", open, err)
	}
}

type closing struct {
	io.Reader
	close func()
}

func (c closing) Close() error { c.close(); return nil }
