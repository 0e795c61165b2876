package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/internal/must"
)

// watched is a disk that notes what is done, and what stood in a file when it was synced.
type watched struct{ did []string }

func (w *watched) note(format string, args ...any) {
	w.did = append(w.did, fmt.Sprintf(format, args...))
}

func (w *watched) disk() disk.Disk {
	d := disk.Real()
	return disk.Disk{
		SyncData: func(f *os.File) error {
			text, _ := os.ReadFile(f.Name())
			w.note("sync %s", text)
			return d.SyncData(f)
		},
		Rename: func(from, to string) error {
			w.note("rename to %s", filepath.Base(to))
			return d.Rename(from, to)
		},
		SyncFolder: func(name string) {
			w.note("sync folder of %s", filepath.Base(name))
			d.SyncFolder(name)
		},
	}
}

// A file that takes another's place is on the disk, to its last byte, before it has the
// name, and then the name is.
func TestRewriteIsSyncedBeforeItHasTheName(t *testing.T) {
	path := writeFile(t, journalLine("twice", "timeout")+journalLine("once", "invalid")+journalLine("twice", "server"))
	var w watched
	if dropped, err := (&Journal{path: path}).dropSuperseded(w.disk(), &KeySet{}); err != nil || dropped != 1 {
		t.Fatalf("%d dropped, %v", dropped, err)
	}
	left := journalLine("once", "invalid") + journalLine("twice", "server")
	if want := []string{"sync " + left, "rename to out.jsonl", "sync folder of out.jsonl"}; !slices.Equal(w.did, want) {
		t.Errorf("got  %q\nwant %q", w.did, want)
	}
}

// If the disk refuses a rewrite, the file stays as it was, with nothing next to it.
func TestRewriteThatCannotBeSynced(t *testing.T) {
	text, full := journalLine("a", "x")+journalLine("a", "y"), errors.New("no space left on device")
	path := writeFile(t, text)
	d := disk.Real()
	d.SyncData = func(*os.File) error { return full }
	if _, err := (&Journal{path: path}).dropSuperseded(d, &KeySet{}); !errors.Is(err, full) || textOf(t, path) != text {
		t.Errorf("%v, then %q", err, textOf(t, path))
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left beside it: %v", left)
	}
}

// What is put aside keeps its new name through a loss of power.
func TestPuttingAsideSyncsTheFolder(t *testing.T) {
	path := writeFile(t, "x")
	var w watched
	must.Get(startOver(w.disk(), path, nil))(t)
	if want := []string{"rename to out.jsonl.bak", "sync folder of out.jsonl.bak"}; !slices.Equal(w.did, want) {
		t.Errorf("got %q", w.did)
	}
}
