package node

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
)

// Results go into a store as they go into a file: again they take the place of what is there, and results of another job stay.
func TestFetchIntoAStore(t *testing.T) {
	c := newCluster(t)
	end := c.workers(1, answer)
	n, r := c.submitted(120)
	c.waitFor(n, r.Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
	local := filepath.Join(c.dir, "local.jsonl")
	if _, err := n.Fetch(t.Context(), r.Job, local, local+".errors", false); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(local)
	if err != nil {
		t.Fatal(err)
	}
	away := "file://" + c.dir + "/results/"
	object := func() []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(c.dir, "results", "out.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for range 2 {
		got, err := n.Fetch(t.Context(), r.Job, away+"out.jsonl", away+"failed.jsonl", false)
		if err != nil || got.Done != 120 || !bytes.Equal(object(), want) {
			t.Errorf("%+v %v", got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(c.dir, "results", "failed.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing has failed, and an object says what: %v", err)
	}
	half := want[:bytes.IndexByte(want, '\n')+1]
	others := append(slices.Clone(want), bytes.Replace(half, []byte("q 0"), []byte("q x"), -1)...)
	if err := os.WriteFile(filepath.Join(c.dir, "results", "out.jsonl"), others, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Fetch(t.Context(), r.Job, away+"out.jsonl", away+"failed.jsonl", false); err == nil || !strings.Contains(err.Error(), away+"out.jsonl") {
		t.Errorf("it takes the place of other results: %v", err)
	}
	if !bytes.Equal(object(), others) {
		t.Error("the results of another are gone")
	}
	if _, err := n.Fetch(t.Context(), r.Job, away, away+"failed.jsonl", false); err == nil || errors.Is(err, parts.ErrOtherResults) {
		t.Errorf("an output without a name: %v", err)
	}
}

// A name that ends in a slash is all that it contains, in order, but for what is empty.
func TestInputsOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"b.jsonl": "b\n", "a.jsonl": "aa\n", "more/c.jsonl": "c\n", "empty": ""} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for input, want := range map[string][]string{
		dir + "/":               {dir + "/a.jsonl", dir + "/b.jsonl", dir + "/more/c.jsonl"},
		"file://" + dir + "/":   {"file://" + dir + "/a.jsonl", "file://" + dir + "/b.jsonl", "file://" + dir + "/more/c.jsonl"},
		dir + "/more/":          {dir + "/more/c.jsonl"},
		dir + "/more/c.jsonl":   {dir + "/more/c.jsonl"},
		t.TempDir() + "/":       nil,
		dir + "/nothing/":       nil,
		dir + "/nothing.jsonl":  nil,
		"file://" + dir + "/no": nil,
	} {
		all, err := InputsOf(t.Context(), input)
		var got []string
		for _, in := range all {
			got = append(got, in.Name)
			if o := in.Objects; len(o) != 1 || want != nil && (o[0].Identity == "" || o[0].Bytes == 0) {
				t.Errorf("%s is %+v", in.Name, o)
			}
		}
		if want == nil && err == nil || want != nil && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("%s: %v (%v), want %v", input, got, err, want)
		}
	}
}
