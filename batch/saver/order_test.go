package saver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// A line counts as saved when it was written, then synced, and when the folder knows
// the file: once, before the first line counts.
func TestWhatCountsIsSyncedFirst(t *testing.T) {
	var synced int64 // bytes of the file when it was last synced
	var did []string
	s, path := newSaver(t, Config{}, func(s *Saver) {
		d := s.keeper.disk
		s.keeper.disk.SyncData = func(f *os.File) error {
			info, err := f.Stat()
			synced = info.Size()
			did = append(did, "data")
			if err != nil {
				return err
			}
			return d.SyncData(f)
		}
		s.keeper.disk.SyncFolder = func(name string) {
			did = append(did, "folder of "+name)
			d.SyncFolder(name)
		}
	})
	var saved int64
	safe := make(chan struct{})
	for n := range 3 {
		s.Save(savedLine(n), func(error) {
			if saved += int64(len(lineText(n))); saved > synced {
				t.Errorf("%d bytes count as saved, and %d are on the disk", saved, synced)
			}
			did = append(did, "saved")
			safe <- struct{}{}
		})
		<-safe
	}
	must.Do(t, s.Close())
	if want := []string{"data", "folder of " + path, "saved", "data", "saved", "data", "saved"}; !slices.Equal(did, want) {
		t.Errorf("got %q", did)
	}
}

// A file that is made with its first line is as safe as one that was there.
func TestLazyFileIsSyncedToo(t *testing.T) {
	path := t.TempDir() + "/e"
	tail := must.Get(lazily(path))(t)
	var did []string
	s := New(tail, Config{})
	s.keeper.disk.SyncData = func(*os.File) error { did = append(did, "data"); return nil }
	s.keeper.disk.SyncFolder = func(name string) { did = append(did, name) }
	s.Save(savedLine(1), nil)
	if err := s.Close(); err != nil || !slices.Equal(did, []string{"data", path}) {
		t.Errorf("%q, %v", did, err)
	}
}

// What an earlier run has written, and was killed before it was synced, is on the disk
// before this one says that all is saved, though it has nothing to add.
func TestEarlierLinesAreSyncedToo(t *testing.T) {
	for mode, want := range map[Durability]string{Sync: "data folder", OS: ""} {
		tail := behindOneLine(t, filepath.Join(t.TempDir(), "r"))
		var did []string
		s := New(tail, Config{Durability: mode})
		s.keeper.disk.SyncData = func(*os.File) error { did = append(did, "data"); return nil }
		s.keeper.disk.SyncFolder = func(string) { did = append(did, "folder") }
		if err := s.Close(); err != nil || strings.Join(did, " ") != want {
			t.Errorf("%q, %v, want %q", did, err, want)
		}
	}
}

// If they cannot be, that is said.
func TestEarlierLinesThatCannotBeSynced(t *testing.T) {
	broken := errors.New("broken")
	s, _ := newSaver(t, Config{}, func(s *Saver) { s.keeper.disk.SyncData = func(*os.File) error { return broken } })
	if err := s.Close(); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
