package promptfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// What a run will write to is found out before any call, by identity and not by name.
func TestFilesAreFoundOutBeforeAnyCall(t *testing.T) {
	d := newFixture(t, ask("a"))
	at := func(name string) string { return filepath.Join(d.dir, name) }
	must.Do(t, errors.Join(os.Symlink("out.jsonl", at("link")), os.Symlink(".", at("here"))))
	for path, want := range map[string]error{
		at("link"): journal.ErrSameFile, at("here/out.jsonl"): journal.ErrSameFile, at("x/../out.jsonl"): journal.ErrSameFile,
		at("here/in.jsonl"): journal.ErrSameFile, at("none/errors.jsonl"): os.ErrNotExist,
	} {
		d.cfg.Errors = path
		d.cfg.Input, _ = File(d.in)
		d.cfg.Output = d.out
		job, err := Open(d.cfg)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if job != nil {
			_ = job.Close()
		}
	}
	if left, _ := os.ReadDir(d.dir); len(left) != 3 {
		t.Errorf("left: %v", left)
	}
}

// Two runs never write to one errors file, whatever else they write to.
func TestOneJobAnErrorsFile(t *testing.T) {
	d := newFixture(t, ask("a"))
	d.cfg.Errors = filepath.Join(d.dir, "errors.jsonl")
	job := d.open()
	other := d.cfg
	for _, output := range []string{filepath.Join(d.dir, "other.jsonl"), ""} {
		other.Output = output
		if _, err := Open(other); !errors.Is(err, journal.ErrLocked) {
			t.Errorf("output %q: %v", output, err)
		}
	}
	if _, err := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) { return good, nil }); err != nil {
		t.Error(err)
	}
	if err := job.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(d.dir, "*.lock")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// That two of a run's files are one is said as such, by what each is for.
func TestOneFileForTwoIsSaidAsSuch(t *testing.T) {
	d := newFixture(t, ask("a"))
	if err := os.Link(d.in, d.in+".hard"); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ output, errors, want string }{
		{d.in, "", "promptfile: the output is the input, " + d.in + ": choose another file"},
		{d.in + ".hard", "", "promptfile: the output, " + d.in + ".hard, is the input, " + d.in + ": choose another file"},
		{d.out, d.in, "promptfile: the errors file is the input, " + d.in + ": choose another file"},
		{d.out, d.out, "promptfile: the errors file is the output, " + d.out + ": choose another file"},
	} {
		d.cfg.Output, d.cfg.Errors = c.output, c.errors
		d.cfg.Input, _ = File(d.in)
		if _, err := Open(d.cfg); !errors.Is(err, journal.ErrSameFile) || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	if left, _ := os.ReadDir(d.dir); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

// One is not several.
func TestBadLinesAreCountedInWords(t *testing.T) {
	for n, want := range map[int]string{
		1: "promptfile: 1 bad line, nothing was called\nand 1 more",
		2: "promptfile: 2 bad lines, nothing was called\nand 2 more",
	} {
		if got := (&BadLines{All: n}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Who starts over learns what is in the way when the job is opened: nothing was moved.
func TestFreshIsRefusedBeforeAnythingIsMoved(t *testing.T) {
	d := newFixture(t, ask("a"))
	if _, _, err := d.run(); err != nil {
		t.Fatal(err)
	}
	d.cfg.Fresh, d.cfg.Output, d.cfg.Errors = true, d.out, d.dir
	before := d.files()
	if _, err := Open(d.cfg); !errors.Is(err, journal.ErrDirectory) {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(d.dir); len(left) != 2 || d.files() != before {
		t.Errorf("left: %v", left)
	}
}

// Results are plain text: no file gets a name by which others would try to unpack it.
func TestNoResultsUnderThePackedName(t *testing.T) {
	d := newFixture(t, ask("a"))
	d.cfg.Input, _ = File(d.in)
	for _, name := range []string{"o.jsonl.gz", "o.GZ", "o.zst"} {
		for _, files := range [][2]string{{name, ""}, {"o.jsonl", name}} {
			d.cfg.Output, d.cfg.Errors = filepath.Join(d.dir, files[0]), ""
			if files[1] != "" {
				d.cfg.Errors = filepath.Join(d.dir, files[1])
			}
			if _, err := Open(d.cfg); !errors.Is(err, ErrPacked) {
				t.Errorf("%q: %v", files, err)
			}
		}
	}
	if left, _ := os.ReadDir(d.dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// idsIn are the custom ids of a result file, in order.
func idsIn(t *testing.T, path string) (ids []string) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	for line := range bytes.Lines(text) {
		var l journal.Line
		must.Do(t, json.Unmarshal(line, &l))
		ids = append(ids, l.CustomID)
	}
	return ids
}

// No id stands twice in an output, whatever became of the input between two runs. An item
// that has the id of another question's result gets a unique suffix, which is reported. If
// the same question comes again, nothing is reported.
func TestNoIDStandsTwice(t *testing.T) {
	bare := func(prompt, model string) string { return fmt.Sprintf(`{"prompt":%q,"model":%q}`, prompt, model) }
	d := newFixture(t)
	var reported []string
	d.cfg.Watch.Renamed = func(req *prompts.Request, was string) { reported = append(reported, was+">"+req.ID) }
	for _, step := range []struct {
		what     string
		input    []string
		asked    string
		reported string
	}{
		{"the first run", []string{bare("a", "m"), bare("b", "m")}, "line-000001 line-000002", ""},
		{"again", []string{bare("a", "m"), bare("b", "m")}, "", ""},
		{"a line above", []string{bare("z", "m"), bare("a", "m"), bare("b", "m")}, "line-000001-2", "line-000001>line-000001-2"},
		{"again, moved", []string{bare("b", "m"), bare("a", "m"), bare("z", "m")}, "", ""},
		{"another model", []string{bare("a", "n")}, "line-000001-3", "line-000001>line-000001-3"},
		{"a given id that is a suffix, before", []string{ask("line-000002-2"), bare("q", "m")}, "line-000002-2 line-000002-3", "line-000002>line-000002-3"},
		{
			"a given id that is a suffix, behind",
			[]string{bare("r", "m"), ask("line-000001-4")},
			"line-000001-4 line-000001-4-2",
			"line-000001>line-000001-4 line-000001-4>line-000001-4-2",
		},
		{"a line of its own, changed", []string{strings.Replace(ask("line-000002-2"), `"p"`, `"p2"`, 1)}, "line-000002-2-2", "line-000002-2>line-000002-2-2"},
	} {
		write(t, d.in, strings.Join(step.input, "\n"))
		reported = nil
		sums, asked, err := d.run()
		if err != nil || asked != step.asked || strings.Join(reported, " ") != step.reported || sums.Renamed != len(reported) {
			t.Errorf("%s: asked %q, told %q, %+v, %v", step.what, asked, reported, sums, err)
		}
	}
	seen := map[string]bool{}
	for _, id := range idsIn(t, d.out) {
		if seen[id] {
			t.Errorf("%s stands twice", id)
		}
		seen[id] = true
	}
	if len(seen) != 9 {
		t.Errorf("%v", seen)
	}
}

// An item that failed leaves its id to the corrected one; ids count in the output alone.
func TestFailedItemKeepsNoID(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"))
	d.answer = func(it *Item) (provider.Reply, error) {
		if it.ID == "a" {
			return provider.Reply{}, batch.Permanent(errors.New("no"))
		}
		return good, nil
	}
	d.run()
	d.answer = func(*Item) (provider.Reply, error) { return good, nil }
	write(t, d.in, strings.Replace(ask("a"), `"p"`, `"corrected"`, 1)+"\n"+ask("b"))
	if sums, asked, err := d.run(); err != nil || asked != "a" || sums.Renamed != 0 {
		t.Errorf("asked %q, %+v, %v", asked, sums, err)
	}
}

// lender answers at length out of a room for one answer, which Done gives back.
type lender struct {
	room chan struct{}
	slow string // the item whose answer comes last
	lent int    // answers that gave their room back
	body []byte
}

// long is more than a saver takes without looking at it, longer a quarter of a bundle.
var long, longer = answerOf(100_000), answerOf(1 << 20)

func answerOf(n int) []byte { return []byte(`{"a":"` + strings.Repeat("a", n) + `"}`) }

func (l *lender) call(ctx context.Context, it *Item) (provider.Reply, error) {
	if it.ID == l.slow {
		time.Sleep(time.Second) // others come first; less than a call may take
	}
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return provider.Reply{}, ctx.Err()
	}
	reply := good
	reply.Body = l.body
	reply.Done = func() { l.lent++; <-l.room }
	return reply, nil
}

// lend runs a file of that many items over a room for one answer.
func (d *jobFixture) lend(l *lender, items int) Sums {
	d.t.Helper()
	var sums Sums
	synctest.Test(d.t, func(t *testing.T) {
		l.room = make(chan struct{}, 1)
		job := d.open()
		var err error
		sums, err = job.Run(t.Context(), l.call)
		if fault := job.Close(); err != nil || fault != nil {
			t.Error(err, fault)
		}
	})
	if l.lent != items {
		d.t.Errorf("%d of %d answers gave their room back", l.lent, items)
	}
	return sums
}

// Each answer gives its room back as soon as its line is taken over, so where there is
// room for one all come through; also where they wait for the first in the input, which
// comes last and finds no room but what they give back.
func TestAnswersGiveTheirRoomBack(t *testing.T) {
	const items = 20
	for _, ordered := range []bool{false, true} {
		d := newFixture(t, manyItems(items)...)
		d.cfg.InputOrder, d.cfg.Concurrency = ordered, 8
		if sums := d.lend(&lender{slow: "0", body: long}, items); sums.Succeeded != items {
			t.Errorf("ordered: %t: %+v", ordered, sums)
		}
		if p := d.progress(); p.Done != items {
			t.Errorf("ordered: %t: %+v", ordered, p)
		}
	}
}

// halting is a disk that stands still until it is let go.
type halting struct{ free chan struct{} }

func (h halting) Write(p []byte) (int, error) { <-h.free; return len(p), nil }

// While the disk stands still, answers keep their room but for some megabytes that are on
// their way to it.
func TestAnswersKeepTheirRoomWhileTheDiskStalls(t *testing.T) {
	const items = 30
	d := newFixture(t, manyItems(items)...)
	d.cfg.Errors, d.cfg.Concurrency, d.cfg.Checked = d.dir+"/errors", items, true
	synctest.Test(t, func(t *testing.T) {
		disk, l := halting{make(chan struct{})}, &lender{room: make(chan struct{}, items), body: longer}
		d.cfg.Stdout = disk
		d.cfg.Input, _ = File(d.in)
		job := must.Get(Open(d.cfg))(t)
		over := make(chan error)
		go func() { _, err := job.Run(t.Context(), l.call); over <- err }()
		time.Sleep(time.Minute)
		if kept := len(l.room); kept < items-10 || kept == items {
			t.Errorf("%d of %d answers have their room still", kept, items)
		}
		close(disk.free)
		if err := <-over; err != nil || len(l.room) > 0 || l.lent != items {
			t.Errorf("%v, %d of %d gave their room back", err, l.lent, items)
		}
		if err := job.Close(); err != nil {
			t.Error(err)
		}
	})
}
