package job

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/cluster/store/storetest"
)

func asked() *Record {
	return &Record{
		Inputs:     []Input{{Name: "a.jsonl", Objects: []Object{{Store: "/in", Name: "a.jsonl", Identity: "1", Bytes: 9}}}},
		Submission: &Submission{Output: "/out.jsonl", Settings: map[string]string{"model": "m", "weight": "1"}},
	}
}

func keyOf(t *testing.T, r *Record, name string) string {
	t.Helper()
	key, err := KeyOf(r, name)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The key of a submission changes with all that decides what is bought, and with nothing else.
func TestKeyOfASubmission(t *testing.T) {
	t.Parallel()
	first := keyOf(t, asked(), "")
	place, _, _ := strings.Cut(first, "/")
	for name, c := range map[string]struct {
		change     func(*Record)
		same, near bool // equal keys; equal but for the input
	}{
		"nothing":         {func(*Record) {}, true, true},
		"weight":          {func(r *Record) { r.Submission.Settings["weight"] = "2" }, true, true},
		"chunk lines":     {func(r *Record) { r.Submission.Settings["chunk-lines"] = "7" }, true, true},
		"another way":     {func(r *Record) { r.Inputs[0].Name = "./a.jsonl" }, true, true},
		"unpacked":        {func(r *Record) { in := r.Inputs[0].Objects[0]; r.Inputs[0].Given, r.Inputs[0].Objects = &in, nil }, true, true},
		"added":           {func(r *Record) { r.Inputs = append(r.Inputs, Input{Added: 1}) }, true, true},
		"a changed input": {func(r *Record) { r.Inputs[0].Objects[0].Identity = "2" }, false, true},
		"a longer input":  {func(r *Record) { r.Inputs[0].Objects[0].Bytes = 10 }, false, true},
		"another input":   {func(r *Record) { r.Inputs[0].Objects[0].Name = "b.jsonl" }, false, true},
		"one more input":  {func(r *Record) { r.Inputs = append(r.Inputs, r.Inputs[0]) }, false, true},
		"another output":  {func(r *Record) { r.Submission.Output = "/o.jsonl" }, false, false},
		"another setting": {func(r *Record) { r.Submission.Settings["model"] = "n" }, false, false},
	} {
		r := asked()
		c.change(r)
		key := keyOf(t, r, "")
		if (key == first) != c.same || strings.HasPrefix(key, place+"/") != c.near {
			t.Errorf("%s: %s and %s", name, first, key)
		}
		if keyOf(t, r, "nightly") != keyOf(t, asked(), "nightly") {
			t.Errorf("%s: a name has several keys", name)
		}
	}
	if _, err := KeyOf(asked(), "../x"); !errors.Is(err, ErrName) {
		t.Error(err)
	}
}

// Of those who claim a key at once one gets its name for the job, and all hear the same.
func TestClaimsAtOnceAreOne(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	names := []string{"a", "b", "c", "d", "e", "f"}
	got := make([]string, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			var err error
			if got[i], err = Claim(t.Context(), s, "p/w", name); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if slices.Sort(got); got[0] != got[len(got)-1] || !slices.Contains(names, got[0]) {
		t.Errorf("they are %v", got)
	}
}

// A key that was freed names another job. A job that a key does not name frees nothing.
func TestDisclaim(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	claim := func(name, want string) {
		t.Helper()
		if got, err := Claim(t.Context(), s, "named/n", name); got != want || err != nil {
			t.Errorf("%s, want %s: %v", got, want, err)
		}
	}
	disclaim := func(name string) {
		t.Helper()
		if err := Disclaim(t.Context(), s, "named/n", name); err != nil {
			t.Error(err)
		}
	}
	disclaim("n-1")
	claim("n-1", "n-1")
	disclaim("n-0")
	claim("n-2", "n-1")
	if got, err := Named(t.Context(), s, "n"); got != "n-1" || err != nil {
		t.Errorf("%s: %v", got, err)
	}
	disclaim("n-1")
	if _, err := Named(t.Context(), s, "n"); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	claim("n-2", "n-2")
	disclaim("")
	claim("n-3", "n-3")
}

// A job's own name comes before one under which another was submitted.
func TestAJobsOwnNameComesFirst(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	if _, err := Create(t.Context(), s, Record{Job: "n"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(t.Context(), s, "named/n", "n-1"); err != nil {
		t.Fatal(err)
	}
	if got, err := Named(t.Context(), s, "n"); got != "n" || err != nil {
		t.Errorf("%s: %v", got, err)
	}
}

// Earlier finds the latest job of an input in another state. It finds no job of another input or of a name.
func TestEarlier(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	for key, name := range map[string]string{"p/1": "20260101-a", "p/2": "20260102-a", "p/3": "20260103-a", "q/4": "20260104-a", "named/n": "n-a", "named/m": "m-a"} {
		if _, err := Claim(t.Context(), s, key, name); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]string{"p/3": "20260102-a", "q/4": "", "named/n": ""} {
		if got, err := Earlier(t.Context(), s, key); got != want || err != nil {
			t.Errorf("%s: %q, want %q: %v", key, got, want, err)
		}
	}
}

// What differs is named by its flag or its input.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Record){
		"":                               func(*Record) {},
		"--model n: it has m":            func(r *Record) { r.Submission.Settings["model"] = "n" },
		"--model is not set: it has m":   func(r *Record) { delete(r.Submission.Settings, "model") },
		"--system s: it has none":        func(r *Record) { r.Submission.Settings["system"] = "s" },
		"--output /o: it has /out.jsonl": func(r *Record) { r.Submission.Output = "/o" },
		"a.jsonl has changed since":      func(r *Record) { r.Inputs[0].Objects[0].Identity = "2" },
		"a.jsonl is not its input":       func(r *Record) { r.Inputs[0].Objects[0].Store = "/other" },
		"it has the input a.jsonl":       func(r *Record) { r.Inputs = nil },
		"b.jsonl is not its input":       func(r *Record) { b := r.Inputs[0]; b.Name = "b.jsonl"; r.Inputs = append(r.Inputs, b) },
	} {
		r := asked()
		change(r)
		if got := strings.Join(Differences(asked(), r), "; "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	added := asked()
	added.Inputs = append(added.Inputs, Input{Name: "more", Added: 1, Objects: []Object{{Name: "more"}}})
	if got := Differences(added, asked()); got != nil {
		t.Errorf("of inputs that were added later: %v", got)
	}
	old := asked()
	old.Submission = nil
	if got := Differences(old, asked()); got != nil {
		t.Errorf("of a program that knows nothing of submissions: %v", got)
	}
}
