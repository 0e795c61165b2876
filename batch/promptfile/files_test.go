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
