package job

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"go.uber.org/goleak"
)

func someRecord() Record {
	return Record{
		Job: "j", Inputs: []Input{{Name: "in.jsonl", Format: JSONL, Objects: []Object{{Name: "in", Identity: "1", Bytes: 7}}}},
		Reading: Reading{System: "be brief", Template: "Say {{.x}}"}, Asking: Asking{Provider: "sim", Settings: map[string]string{"timeout": "5s"}},
		Limit: "org", Known: KnownLimits{RPM: 5},
	}
}

// A record is read as it was written, with its defaults, and the latest counts.
func TestRecords(t *testing.T) {
	s := storetest.NewMemory()
	made, err := Create(t.Context(), s, someRecord())
	if err != nil || made.State != Indexing || made.Weight != 1 || made.Cut.ChunkLines != DefaultChunkLines || made.Cut.SegmentBytes != DefaultSegment {
		t.Fatalf("%+v, %v", made, err)
	}
	for k := range 12 {
		read, err := Load(t.Context(), s, "j")
		if err != nil || !reflect.DeepEqual(read, made) || read.Version != k {
			t.Fatalf("%d: %+v, %v\nnot %+v", k, read, err, made)
		}
		if made, err = Change(t.Context(), s, "j", func(r *Record) error { r.Round++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Create(t.Context(), s, someRecord()); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	if _, err := Load(t.Context(), s, "k"); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
}

// Who changes a record while another does changes what the other has left: nothing is lost.
func TestChangesFollowOneAnother(t *testing.T) {
	s := storetest.NewMemory()
	must.Get(Create(t.Context(), s, someRecord()))(t)
	tries := 0
	last, err := Change(t.Context(), s, "j", func(r *Record) error {
		if tries++; tries < 4 {
			must.Get(Change(t.Context(), s, "j", func(r *Record) error { r.Round += 10; return nil }))(t)
		}
		r.Round++
		return nil
	})
	if err != nil || last.Round != 31 || last.Version != 4 || tries != 4 {
		t.Errorf("%+v, %v after %d tries", last, err, tries)
	}
	mine := errors.New("not now")
	if _, err := Change(t.Context(), s, "j", func(*Record) error { return mine }); err != mine { //nolint:errorlint // it is to be the very same
		t.Error(err)
	}
	if same, err := Change(t.Context(), s, "j", func(r *Record) error { r.Round += 0; return nil }); err != nil || same.Version != 4 {
		t.Errorf("version %d, %v: nothing was changed", same.Version, err)
	}
}

// What a newer program has written is refused with what to do, and foreign things are too.
func TestRecordsOfOthers(t *testing.T) {
	for text, want := range map[string]error{
		fmt.Sprintf(`{"format":%d,"inputs":{"of another":"shape"}}`, RecordFormat+1): ErrNewer,
		`{}`:                                 ErrRecord,
		`not JSON`:                           ErrRecord,
		`{"format":1,"inputs":5}`:            ErrRecord,
		`{"format":1,"job":"k"}`:             ErrRecord,
		`{"format":1,"job":"j","version":7}`: ErrRecord,
		`{"format":1,"job":"k","version":3}`: ErrRecord,
	} {
		s := storetest.NewMemory()
		must.Do(t, store.CreateBytes(t.Context(), s, recordName("j", 3), []byte(text)))
		if _, err := Load(t.Context(), s, "j"); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := Change(t.Context(), s, "j", func(*Record) error { return nil }); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What makes no sense is not written.
func TestRecordsThatAreRefused(t *testing.T) {
	for what, spoil := range map[string]func(*Record){
		"name":     func(r *Record) { r.Job = "../x" },
		"weight":   func(r *Record) { r.Weight = -1 },
		"nan":      func(r *Record) { r.Weight = math.NaN() },
		"password": func(r *Record) { r.Asking.BaseURL = "https://me:secret@host/v1" },
		"format":   func(r *Record) { r.Inputs[0].Format = "xml" },
		"template": func(r *Record) { r.Reading.Template = "{{" },
		"inputs":   func(r *Record) { r.Inputs = slices.Repeat(r.Inputs, MaxInputs+1) },
		"size":     func(r *Record) { r.Output = strings.Repeat("x", MaxRecord) },
	} {
		s, r := storetest.NewMemory(), someRecord()
		spoil(&r)
		if _, err := Create(t.Context(), s, r); err == nil {
			t.Errorf("%s: it was written", what)
		}
		for o := range s.List(t.Context(), "", "") {
			t.Errorf("%s: %s is there", what, o.Name)
		}
	}
}

// Jobs are listed by name, and nothing else that stands there is one.
func TestList(t *testing.T) {
	s := storetest.NewMemory()
	want := []string{"a-b", "a", "a0", "b"} // - comes before the slash behind a name
	for _, name := range []string{"b", "a0", "a", "a-b"} {
		r := someRecord()
		r.Job = name
		must.Get(Create(t.Context(), s, r))(t)
		for _, object := range []string{"DONE", "zzz/1", "parts/000000/000"} {
			must.Do(t, store.CreateBytes(t.Context(), s, Folder(name)+object, nil))
		}
	}
	for _, object := range []string{"jobs/left/parts/000000/000", "jobs/Foreign/job-000000.json", "keeper/epoch-1"} {
		must.Do(t, store.CreateBytes(t.Context(), s, object, nil))
	}
	var got []string
	for name, err := range List(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// Names of objects say what they are of, and stand in the order of the numbers in them.
func TestNames(t *testing.T) {
	var names []string
	for _, n := range []int{0, 7, 999, 1000, 12_345, 999_999_999} {
		for _, round := range []int{0, 1, 12} {
			name := PartName("j", n, round)
			if chunk, r, ok := ParsePart("j", name); !ok || chunk != n || r != round {
				t.Errorf("%s: %d, %d, %t", name, chunk, r, ok)
			}
			if folder, r, ok := ParseSums("j", SumsName("j", n/PerFolder, round)); !ok || folder != n/PerFolder || r != round {
				t.Errorf("%s: %d, %d, %t", name, folder, r, ok)
			}
			names = append(names, name)
			for _, made := range []string{name, SumsName("j", n, round), DoneName("j", round), WorkFolder("j", n, round) + "x", recordName("j", n)} {
				if err := store.CheckName(made); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("%v", names)
	}
	for _, name := range []string{"", "jobs/j/parts/", "jobs/j/parts/000000/1000", "jobs/j/parts/000000/001.r0", "jobs/j/parts/0/001", "jobs/k/parts/000000/001", "jobs/j/parts/000000/001.rx", "jobs/j/parts/000000/-01"} {
		if _, _, ok := ParsePart("j", name); ok {
			t.Errorf("%q is taken for a part", name)
		}
	}
	for _, name := range []string{"", "-a", "A", "a/b", "a.b", "é", "a b", strings.Repeat("a", 65)} {
		if err := CheckName(name); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "0", "20260711-1042-k3f9", strings.Repeat("a", 64)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
}

// refusesDeletion is a store that deletes so many objects, and no more.
type refusesDeletion struct {
	store.Store
	left int
}

func (r *refusesDeletion) Delete(ctx context.Context, name string) error {
	if r.left--; r.left < 0 {
		return store.ErrAway
	}
	return r.Store.Delete(ctx, name)
}

// A job whose deletion broke off is there as long as anything of it is, so that the deletion can be repeated.
func TestRemoveBreaksOff(t *testing.T) {
	home := storetest.NewMemory()
	r := must.Get(Create(t.Context(), home, someRecord()))(t)
	const objects = 5
	for i := range objects - 1 {
		must.Do(t, store.CreateBytes(t.Context(), home, fmt.Sprintf("%sz/%d", Folder(r.Job), i), nil))
	}
	for range objects - 1 {
		if err := Remove(t.Context(), &refusesDeletion{home, 1}, r.Job); !errors.Is(err, store.ErrAway) {
			t.Fatalf("%v", err)
		}
		if _, err := Load(t.Context(), home, r.Job); err != nil {
			t.Fatalf("a part of the job is there, and its record is not: %v", err)
		}
	}
	must.Do(t, Remove(t.Context(), home, r.Job))
	for o, err := range home.List(t.Context(), Folder(r.Job), "") {
		t.Errorf("%v is left, %v", o, err)
	}
}

// A bound is reached by time, by a number of failures, or by their share once a hundred items have ended.
func TestBoundsAreReached(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		bounds        Bounds
		ended, failed int
		says          string
	}{
		"none":                {Bounds{}, 1000, 1000, ""},
		"before its end":      {Bounds{Deadline: at.Add(1)}, 0, 0, ""},
		"at its end":          {Bounds{Deadline: at}, 0, 0, "--deadline"},
		"some failures":       {Bounds{Failures: 3}, 10, 2, ""},
		"as many":             {Bounds{Failures: 3}, 10, 3, "3 items have failed, and --max-failures is 3"},
		"a share of few":      {Bounds{Share: 0.05}, 99, 99, ""},
		"a smaller share":     {Bounds{Share: 0.05}, 100, 4, ""},
		"the share of enough": {Bounds{Share: 0.05}, 100, 5, "5 of 100 items have failed, and --max-failures is 5%"},
	} {
		if got := c.bounds.Reached(at, c.ended, c.failed); !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}

func asked() *Record {
	return &Record{
		Inputs:     []Input{{Name: "a.jsonl", Objects: []Object{{Store: "/in", Name: "a.jsonl", Identity: "1", Bytes: 9}}}},
		Submission: &Submission{Output: "/out.jsonl", Settings: map[string]string{"model": "m", "weight": "1"}},
	}
}

func keyOf(t *testing.T, r *Record, name string) string {
	t.Helper()
	key := must.Get(KeyOf(r, name))(t)
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
	must.Get(Create(t.Context(), s, Record{Job: "n"}))(t)
	must.Get(Claim(t.Context(), s, "named/n", "n-1"))(t)
	if got, err := Named(t.Context(), s, "n"); got != "n" || err != nil {
		t.Errorf("%s: %v", got, err)
	}
}

// Earlier finds the latest job of an input in another state. It finds no job of another input or of a name.
func TestEarlier(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	for key, name := range map[string]string{"p/1": "20260101-a", "p/2": "20260102-a", "p/3": "20260103-a", "q/4": "20260104-a", "named/n": "n-a", "named/m": "m-a"} {
		must.Get(Claim(t.Context(), s, key, name))(t)
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A job with a cap has the latest format, which an older worker leaves alone; all other jobs stay readable to it. Caps only
// rise.
func TestFormatsOfCaps(t *testing.T) {
	for name, c := range map[string]struct {
		caps   []limiter.Money
		format int
	}{
		"none": {nil, plainFormat}, "one": {[]limiter.Money{1}, RecordFormat}, "raised": {[]limiter.Money{1, 2}, RecordFormat},
		"none left": {[]limiter.Money{0}, 0}, "lowered": {[]limiter.Money{2, 1}, 0},
	} {
		s := storetest.NewMemory()
		r, err := Create(t.Context(), s, Record{Job: "j", Caps: c.caps})
		if (err == nil) != (c.format > 0) || err == nil && r.Format != c.format {
			t.Errorf("%s: format %d, %v", name, r.Format, err)
		}
	}
}

// The cap that holds is the latest that was set. Notes are cut from caps that only rise.
func TestCapOfARecord(t *testing.T) {
	r := &Record{}
	if r.Cap() != 0 {
		t.Error("a job without a cap has one")
	}
	r.Caps = []limiter.Money{10}
	for _, c := range []struct {
		set  limiter.Money
		caps []limiter.Money
	}{
		{4, []limiter.Money{10}},
		{7, []limiter.Money{10}},
		{10, []limiter.Money{10}},
		{12, []limiter.Money{10, 12}},
		{11, []limiter.Money{10, 12}},
		{13, []limiter.Money{10, 12, 13}},
	} {
		r.SetCap(c.set)
		if !slices.Equal(r.Caps, c.caps) || r.Cap() != c.set || r.check() != nil {
			t.Errorf("set to %d: caps %d, and %d holds: %v", c.set, r.Caps, r.Cap(), r.check())
		}
	}
	for _, lowered := range []limiter.Money{-1, 13, 14} {
		if r.Lowered = lowered; r.check() == nil {
			t.Errorf("%d is taken for a lowered cap", lowered)
		}
	}
}
