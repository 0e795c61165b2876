package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// stateAt is a state file in a folder of its own, by a clock that stands still.
func stateAt(t *testing.T, now time.Time) *File {
	t.Helper()
	return &File{
		Path: filepath.Join(t.TempDir(), "out.state.json"), Server: "openai at http://a", Print: "ab", Law: "model",
		Now: func() time.Time { return now }, Disk: disk.Real(), Synced: true,
	}
}

// waiting is a memory of one lane that waits as its server asked, saved at that moment.
func waiting(at time.Time) batch.Memory {
	return batch.Memory{Lanes: map[string]batch.LaneMemory{"openai/m": {
		Version: machine.LaneMemoryVersion, Until: at.Add(30 * time.Second),
		Law: limiter.Memory{Version: limiter.MemoryVersion, Law: "model", At: at, Answered: 0.1},
	}}}
}

var someDay = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func mustSave(t *testing.T, s *File, m batch.Memory) {
	t.Helper()
	must.Do(t, s.Save(m))
}

// A saved state is read again; only the owner can read the file, and no other file lies next
// to it.
func TestStateComesBack(t *testing.T) {
	s := stateAt(t, someDay)
	if m, err := s.Load(); m.Lanes != nil || m.Items != nil || err != nil {
		t.Errorf("none there: %v %v", m, err)
	}
	known := waiting(someDay)
	known.Items = map[string]batch.ItemMemory{"a": {Failures: 3, Doubts: 1}, "b": {Failures: 1}}
	for range 2 {
		mustSave(t, s, known)
	}
	m, err := s.Load()
	if err != nil || len(m.Lanes) != 1 || !m.Lanes["openai/m"].Until.Equal(someDay.Add(30*time.Second)) || m.Lanes["openai/m"].Law.Answered != 0.1 || !maps.Equal(m.Items, known.Items) {
		t.Errorf("%v %+v", err, m)
	}
	files, _ := os.ReadDir(filepath.Dir(s.Path))
	if info, err := os.Stat(s.Path); err != nil || info.Mode().Perm() != 0o600 || len(files) != 1 {
		t.Errorf("%v, %d files, %v", info.Mode(), len(files), err)
	}
}

// A state that is old, from the future, of another server, key, law or version, or
// damaged is not used, and replaced by the next save.
func TestStateThatIsNotUsed(t *testing.T) {
	rewritten := func(from, to string) func(*testing.T, *File) {
		return func(t *testing.T, s *File) {
			text, err := os.ReadFile(s.Path)
			if err != nil || !strings.Contains(string(text), from) {
				t.Fatalf("%q is not in %s: %v", from, text, err)
			}
			must.Do(t, os.WriteFile(s.Path, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
		}
	}
	saved := func(m batch.Memory) func(*testing.T, *File) {
		return func(t *testing.T, s *File) { mustSave(t, s, m) }
	}
	later := func(d time.Duration) func(*testing.T, *File) {
		return func(_ *testing.T, s *File) { s.Now = func() time.Time { return someDay.Add(d) } }
	}
	older := func(t *testing.T, s *File) { // it remembered what no law knows today
		text, err := os.ReadFile(s.Path)
		var sealed sealed
		if err := errors.Join(err, json.Unmarshal(text, &sealed)); err != nil || !bytes.Contains(sealed.State, []byte(`"answered":`)) {
			t.Fatalf("%v: %s", err, text)
		}
		sealed.State = bytes.Replace(sealed.State, []byte(`"answered":`), []byte(`"depth":{"most":10},"answered":`), 1)
		sealed.Sum = sumOf(sealed.State)
		text, err = json.Marshal(sealed)
		must.Do(t, errors.Join(err, os.WriteFile(s.Path, text, 0o600)))
	}
	newer := waiting(someDay)
	k := newer.Lanes["openai/m"]
	k.Law.Version = limiter.MemoryVersion + 1
	newer.Lanes["openai/m"] = k
	for name, c := range map[string]struct {
		change func(*testing.T, *File)
		want   string // "": it is used
	}{
		"fresh":               {later(0), ""},
		"of yesterday":        {later(maxAge), ""},
		"too old":             {later(maxAge + time.Second), "it is older than 24.0 h"},
		"of a clock put back": {later(-maxAhead), ""},
		"from the future":     {later(-time.Hour), "it was saved 60 min in the future by this machine's clock"},
		"another server":      {func(_ *testing.T, s *File) { s.Server = "openai at http://b" }, "it is about openai at http://a, and this run calls openai at http://b"},
		"another key":         {func(_ *testing.T, s *File) { s.Print = "ac" }, "it is about another address, key or organisation"},
		"another law":         {func(_ *testing.T, s *File) { s.Law = "plain" }, "it is for --law model, and this run uses plain"},
		"of an older law":     {older, ""},
		"another version":     {rewritten(`"headrace_state":2`, `"headrace_state":3`), "it has version 3; this headrace reads up to version 2"},
		"a newer law":         {saved(newer), "lane memory: memory: version 2 is newer than 1: it was saved by a later headrace"},
		"a changed wait":      {rewritten("12:00:30", "13:00:30"), "it is damaged"},
		"cut off":             {func(_ *testing.T, s *File) { _ = os.Truncate(s.Path, 100) }, "it is damaged"},
		"lost to zeros":       {func(_ *testing.T, s *File) { _ = os.WriteFile(s.Path, make([]byte, 600), 0o600) }, "it is damaged"},
		"empty":               {func(_ *testing.T, s *File) { _ = os.Truncate(s.Path, 0) }, "it is damaged"},
		"with more behind":    {rewritten("\n", "\n{}"), "it is damaged"},
		"an unknown word":     {rewritten(`"sum":`, `"sun":1,"sum":`), "it is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stateAt(t, someDay)
			mustSave(t, s, waiting(someDay))
			c.change(t, s)
			m, err := s.Load()
			switch {
			case c.want == "" && (err != nil || len(m.Lanes) != 1):
				t.Errorf("not used: %v", err)
			case c.want != "" && (err == nil || err.Error() != c.want || errors.Is(err, ErrNotOurs)):
				t.Errorf("%v, want %s", err, c.want)
			}
			mustSave(t, s, waiting(s.Now()))
		})
	}
}

// What is known of items is used for as long as the file is there, whatever became of the
// lanes; numbers that no item can have are left out.
func TestItemsOutlastLanes(t *testing.T) {
	s := stateAt(t, someDay)
	m := waiting(someDay)
	m.Items = map[string]batch.ItemMemory{"a": {Failures: 2}, "none": {}, "more doubts than failures": {Failures: 1, Doubts: 2}, "less than none": {Failures: 1, Doubts: -1}}
	mustSave(t, s, m)
	s.Now = func() time.Time { return someDay.Add(2 * maxAge) }
	if m, err := s.Load(); err != nil || len(m.Lanes) != 0 || len(m.Items) != 1 || m.Items["a"].Failures != 2 {
		t.Errorf("%v %+v", err, m)
	}
}

// A state of the version before knows of no items, and is used.
func TestStateOfTheVersionBefore(t *testing.T) {
	s := stateAt(t, someDay)
	mustSave(t, s, waiting(someDay))
	text, err := os.ReadFile(s.Path)
	if err != nil || !strings.Contains(string(text), `"headrace_state":2`) {
		t.Fatal(err, string(text))
	}
	must.Do(t, os.WriteFile(s.Path, []byte(strings.Replace(string(text), `"headrace_state":2`, `"headrace_state":1`, 1)), 0o600))
	if m, err := s.Load(); err != nil || len(m.Lanes) != 1 {
		t.Errorf("%v %+v", err, m)
	}
}

// A save leaves out old lanes even if runs that call other models save the state again and
// again.
func TestOldLanesAreLeftOut(t *testing.T) {
	s, m := stateAt(t, someDay), waiting(someDay)
	m.Lanes["openai/old"] = waiting(someDay.Add(-2 * maxAge)).Lanes["openai/m"]
	mustSave(t, s, m)
	if m, err := s.Load(); err != nil || len(m.Lanes) != 1 || m.Lanes["openai/m"].Version == 0 {
		t.Errorf("%v %+v", err, m)
	}
}

// What somebody else has put where the state would be, or where it is written first, is
// not read, not followed and not changed.
func TestStateOfOthersIsLeftAlone(t *testing.T) {
	for name, put := range map[string]func(path, elsewhere string) error{
		"a file":            func(path, _ string) error { return os.WriteFile(path, []byte(`{"mine":true}`), 0o644) },
		"a link":            func(path, elsewhere string) error { return os.Symlink(elsewhere, path) },
		"a link to nothing": func(path, elsewhere string) error { return os.Symlink(elsewhere+".none", path) },
		"a folder":          func(path, _ string) error { return os.Mkdir(path, 0o755) },
		"a huge file": func(path, _ string) error {
			return errors.Join(os.WriteFile(path, []byte(mark), 0o644), os.Truncate(path, maxBytes+1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stateAt(t, someDay)
			elsewhere := filepath.Join(t.TempDir(), "state")
			other := *s
			other.Path = elsewhere
			mustSave(t, &other, waiting(someDay))
			must.Do(t, put(s.Path, elsewhere))
			if m, err := s.Load(); !errors.Is(err, ErrNotOurs) || m.Lanes != nil {
				t.Errorf("%v %v", err, m)
			}
		})
	}
	for _, suffix := range []string{"", disk.NextSuffix} {
		t.Run("where it is written"+suffix, func(t *testing.T) {
			s := stateAt(t, someDay)
			mustSave(t, s, waiting(someDay))
			must.Do(t, os.WriteFile(s.Path+suffix, []byte("precious"), 0o644))
			if err := s.Save(waiting(someDay)); !errors.Is(err, disk.ErrInTheWay) {
				t.Errorf("%v", err)
			}
			if text, err := os.ReadFile(s.Path + suffix); err != nil || string(text) != "precious" {
				t.Errorf("%q %v", text, err)
			}
		})
	}
}

// A save that fails leaves the old state, and nothing else.
func TestFailedSaveLeavesTheOldState(t *testing.T) {
	s := stateAt(t, someDay)
	mustSave(t, s, waiting(someDay))
	huge := batch.Memory{Lanes: map[string]batch.LaneMemory{}}
	for k := range 2 {
		one := waiting(someDay).Lanes["openai/m"]
		one.Law.Law = strings.Repeat("x", maxBytes*2/3)
		huge.Lanes[strings.Repeat("m", k+1)] = one
	}
	if err := s.Save(huge); err == nil {
		t.Error("a state without bound was saved")
	}
	must.Do(t, os.Mkdir(s.Path+disk.NextSuffix, 0o700))
	if err := s.Save(waiting(someDay.Add(time.Hour))); !errors.Is(err, disk.ErrInTheWay) {
		t.Errorf("%v", err)
	}
	if m, err := s.Load(); err != nil || !m.Lanes["openai/m"].Law.At.Equal(someDay) {
		t.Errorf("%v %v", err, m)
	}
}

// Where the state of an output lies.
func TestStatePath(t *testing.T) {
	for output, want := range map[string]string{
		"results.jsonl": "results.state.json", "a/b.c.jsonl": "a/b.c.state.json", "r": "r.state.json",
		"r.jsonl.gz": "r.state.json", "r.jsonl.zst": "r.state.json", "d.e/r": "d.e/r.state.json",
	} {
		if got := settings.StatePath(output); got != want {
			t.Errorf("%s: %s, want %s", output, got, want)
		}
	}
}

// Whatever a file holds, reading it ends in a memory that a run takes, or in an error.
func FuzzState(f *testing.F) {
	s := &File{Path: filepath.Join(f.TempDir(), "s"), Server: "x", Law: "model", Now: func() time.Time { return someDay }, Disk: disk.Real()}
	must.Do(f, s.Save(waiting(someDay)))
	text := must.Get(os.ReadFile(s.Path))(f)
	f.Add(text)
	f.Add([]byte(mark + `1,"sum":"","state":null}`))
	f.Add([]byte(mark + `1,"sum":"` + sumOf([]byte("{}")) + `","state":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		saved, err := unseal(text)
		if err != nil || s.check(saved) != nil {
			return
		}
		shared := must.Get(batch.NewShared(batch.WithMemory(saved.Memory)))(t)
		shared.Close()
		must.Get(json.Marshal(saved.Memory))(t)
	})
}

// A state is on the disk before it has its name, so that a loss of power takes no more than
// the latest; not where nobody asked for that. One that cannot be synced leaves the one
// before.
func TestStateIsSyncedBeforeItHasTheName(t *testing.T) {
	s, broken := stateAt(t, someDay), errors.New("broken")
	var did []string
	s.Disk.SyncData = func(f *os.File) error {
		text, _ := os.ReadFile(f.Name())
		if _, err := unseal(text); err != nil {
			t.Errorf("synced is %s", text)
		}
		did = append(did, "sync")
		return nil
	}
	s.Disk.Rename = func(from, to string) error { did = append(did, "rename"); return os.Rename(from, to) }
	mustSave(t, s, waiting(someDay))
	s.Synced = false
	mustSave(t, s, waiting(someDay))
	if got := strings.Join(did, " "); got != "sync rename rename" {
		t.Error(got)
	}
	s.Synced, s.Disk.SyncData = true, func(*os.File) error { return broken }
	if err := s.Save(waiting(someDay.Add(time.Hour))); !errors.Is(err, broken) {
		t.Error(err)
	}
	if m, err := s.Load(); err != nil || !m.Lanes["openai/m"].Until.Equal(someDay.Add(30*time.Second)) {
		t.Errorf("%v, %+v", err, m)
	}
	if files, _ := os.ReadDir(filepath.Dir(s.Path)); len(files) != 1 {
		t.Errorf("left: %v", files)
	}
}
