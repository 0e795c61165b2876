package promptfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
)

// A job that was left half way goes on with what is left; items that failed for
// good have ended too. While it is open nobody else gets the output.
func TestJobGoesOn(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	write(t, in, `{"id":"a","prompt":"1"}`+"\n"+`{"id":"b","prompt":"2"}`+"\n"+`{"id":"c","prompt":"3"}`+"\n")
	cfg := prompts.Config{DefaultModel: "m"}
	asked := ""
	for _, take := range []int{2, 9, 9} {
		job, err := OpenJob(in, out, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenJob(in, out, cfg); !errors.Is(err, journal.ErrLocked) {
			t.Errorf("opened twice: %v", err)
		}
		for req := range job.Requests() {
			asked += req.ID
			l := LineFor(&req)
			if req.ID == "b" {
				l.Error = &journal.Failure{Code: "invalid"}
			}
			job.Save(l)
			if take--; take == 0 {
				break
			}
		}
		if err := job.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p, err := journal.ReadProgress(out, journal.ErrorsPath(out))
	if err != nil || p.Done != 2 || p.Failed != 1 || asked != "abc" {
		t.Errorf("%+v, %v, asked %s", p, err, asked)
	}
	if _, err := os.Stat(out + journal.LockSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is left: %v", err)
	}
}

// An input with a bad line makes no file and leaves no lock; every bad line is named.
func TestJobChecksFirst(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	write(t, in, "{x\n"+`{"prompt":"a"}`+"\n[]\n")
	_, err := OpenJob(in, out, prompts.Config{DefaultModel: "m"})
	if err == nil || !strings.Contains(err.Error(), "in.jsonl:1:") || !strings.Contains(err.Error(), "in.jsonl:3:") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if _, err := OpenJob(in, in, prompts.Config{DefaultModel: "m"}); err == nil {
		t.Error("the input was taken for the output")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
