package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/internal/must"
)

// A page of zeros costs the lines that it touches and no other, wherever it lies before
// the end; there it would be a torn line, which the next run cuts off.
func TestRepairOfZeroedStretch(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e"}
	var all []string
	for _, id := range ids {
		all = append(all, journalLine(id, ""))
	}
	text, size := strings.Join(all, ""), len(all[0])
	const page = 300 // longer than a line's end and beginning, shorter than two lines
	d := disk.Real()
	d.SyncData = func(*os.File) error { return nil } // no power is lost here
	for at := 0; at+page < len(text); at += 7 {
		damaged := []byte(text)
		clear(damaged[at : at+page])
		path := writeFile(t, string(damaged))
		r, err := repair(d, path, false)
		if err != nil {
			t.Fatalf("zeros from byte %d: %v", at, err)
		}
		var want []string
		for i, line := range all {
			ends := (i+1)*size - 1 // a line that lacks its line feed is whole
			if at+page <= i*size || at >= ends {
				want = append(want, line)
			}
		}
		if got := textOf(t, path); got != strings.Join(want, "") || r.Kept != len(want) {
			t.Fatalf("zeros from byte %d: kept %d lines of %d", at, strings.Count(got, "\n"), len(want))
		}
		if textOf(t, r.As) != string(damaged) || r.As != path+BackupSuffix {
			t.Fatalf("zeros from byte %d: what was there is not kept", at)
		}
		if j, err := ReadJournal(path); err != nil || j.Lines != len(want) || j.Torn != 0 {
			t.Fatalf("zeros from byte %d: then %+v, %v", at, j, err)
		}
	}
}

// Repair names what it drops: by line, length and, if it is readable, id.
func TestRepairNamesWhatItDrops(t *testing.T) {
	a, b, c := journalLine("a", ""), journalLine("b\"\x1b", ""), journalLine("c", "")
	path := writeFile(t, a+strings.Replace(b, "said", "sad", 1)+"notes\n"+c+b[:60])
	r := must.Get(Repair(path))(t)
	want := []Dropped{{2, len(b) - 1, "b\"\x1b"}, {3, 6, ""}, {5, 60, "b\"\x1b"}}
	if r.Kept != 2 || !slices.Equal(r.Dropped, want) || r.More != 0 {
		t.Errorf("%+v", r)
	}
	if got := textOf(t, path); got != a+c {
		t.Errorf("the file holds %q", got)
	}
}

// Lines whose line feed was lost between them are both good.
func TestRepairOfLostLineFeed(t *testing.T) {
	a, b := journalLine("a", "invalid"), journalLine("b", "timeout")
	for _, between := range []string{"", "J", "\r\r"} {
		path := writeFile(t, a+strings.TrimSuffix(a, "\n")+between+b)
		r, err := RepairErrors(path)
		if err != nil || r.Kept != 3 || textOf(t, path) != a+a+b || len(r.Dropped) != min(1, len(between)) {
			t.Errorf("%q: %+v, %v", between, r, err)
		}
	}
}

// Repair leaves a file alone that has no fault, that holds nothing of ours, or that belongs
// into the other file. It leaves no new file next to them.
func TestRepairThatDoesNothing(t *testing.T) {
	good, bad := journalLine("a", ""), strings.Repeat("notes\n", 3)
	tests := []struct {
		name, text string
		want       error
	}{
		{"good", good, nil},
		{"torn", good + good[:30], nil},
		{"without its line feed", good[:len(good)-1], nil},
		{"foreign", bad, ErrForeign},
		{"ruined", good[:len(opening)] + "\x00" + good[len(opening)+1:], ErrRuined},
		{"the other kind", good + bad + journalLine("b", "invalid"), ErrOtherKind},
	}
	for _, tt := range tests {
		path := writeFile(t, tt.text)
		r, err := Repair(path)
		if !errors.Is(err, tt.want) || err == nil && (r.As != "" || r.Kept != 1) {
			t.Errorf("%s: %+v, %v", tt.name, r, err)
		}
		beside, _ := os.ReadDir(filepath.Dir(path))
		if textOf(t, path) != tt.text || len(beside) != 1 {
			t.Errorf("%s: it was changed, or %d files are there", tt.name, len(beside))
		}
	}
}

// A link to a damaged file stays a link.
func TestRepairThroughLink(t *testing.T) {
	good := journalLine("a", "")
	path := writeFile(t, good+"notes\n"+good)
	link := filepath.Join(t.TempDir(), "link.jsonl")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if r, err := Repair(link); err != nil || textOf(t, path) != good+good || r.As != path+BackupSuffix {
		t.Errorf("%+v, %v", r, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// What takes the damaged file's place is on the disk first, and the old one has its
// second name by then. A disk that does not take it leaves the file as it was.
func TestRepairIsSynced(t *testing.T) {
	good := journalLine("a", "")
	path := writeFile(t, good+"notes\n")
	var w watched
	d := w.disk()
	sync := d.SyncData
	d.SyncData = func(f *os.File) error {
		if textOf(t, path+BackupSuffix) != good+"notes\n" {
			t.Error("the old file has no second name yet")
		}
		return sync(f)
	}
	must.Get(repair(d, path, false))(t)
	want := []string{"sync folder of out.jsonl.bak", "sync " + good, "rename to out.jsonl", "sync folder of out.jsonl"}
	if !slices.Equal(w.did, want) {
		t.Errorf("got  %q\nwant %q", w.did, want)
	}
	full, broken := errors.New("no space left on device"), disk.Real()
	broken.SyncData = func(*os.File) error { return full }
	path = writeFile(t, good+"notes\n")
	if _, err := repair(broken, path, false); !errors.Is(err, full) || textOf(t, path) != good+"notes\n" {
		t.Errorf("%v", err)
	}
}

// However much is ruined, what is remembered of it is bounded.
func TestRepairOfRuin(t *testing.T) {
	path := writeFile(t, journalLine("a", "")+strings.Repeat("\x00\n", 3*maxDropped))
	if r, err := Repair(path); err != nil || len(r.Dropped) != maxDropped || r.More != 2*maxDropped {
		t.Errorf("%v", err)
	}
}

// FuzzRepair: whatever a file holds, each line that was good before is there afterwards,
// and the file is one to go on with.
func FuzzRepair(f *testing.F) {
	good := journalLine("a", "")
	f.Add([]byte(good), []byte("notes"), []byte(good))
	f.Add([]byte(good[:50]), []byte{0, 0, 0}, []byte(good[50:]))
	f.Fuzz(func(t *testing.T, head, middle, tail []byte) {
		text := slices.Concat([]byte(good), head, middle, []byte("\n"+good), tail)
		path := writeFile(t, string(text))
		before := bytes.Count(text, []byte("\n"+good)) + 1
		if _, err := Repair(path); errors.Is(err, ErrOtherKind) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if j, err := ReadJournal(path); err != nil || j.Lines < before {
			t.Fatalf("%+v, %v", j, err)
		}
	})
}
