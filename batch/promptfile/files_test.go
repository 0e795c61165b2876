package promptfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/provider"
)

// What a run will write to is found out before any call, by identity and not by name.
func TestFilesAreFoundOutBeforeAnyCall(t *testing.T) {
	d := newDesk(t, ask("a"))
	at := func(name string) string { return filepath.Join(d.dir, name) }
	if err := errors.Join(os.Symlink("out.jsonl", at("link")), os.Symlink(".", at("here"))); err != nil {
		t.Fatal(err)
	}
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
	d := newDesk(t, ask("a"))
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
	d := newDesk(t, ask("a"))
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
	d := newDesk(t, ask("a"))
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
	d := newDesk(t, ask("a"))
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
