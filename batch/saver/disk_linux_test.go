package saver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/headrace/headrace/batch/journal"
)

func init() { children["fill"] = fill }

// fill saves 10,000 lines to the file that its environment names, under a limit of
// the size of files if one is named too, and says what became of them.
func fill() int {
	signal.Ignore(syscall.SIGXFSZ)
	if os.Getenv("LIMIT") != "" {
		limit := syscall.Rlimit{Cur: 100_000, Max: 100_000}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	w, err := made(os.Getenv("OUT"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	saved := 0
	s := New(w, Config{})
	for n := range 10_000 {
		s.Save(savedLine(n), func(err error) {
			if err == nil {
				saved++
			}
		})
	}
	err = s.Close()
	fmt.Printf("saved %d\n%v\n", saved, err)
	return 0
}

// holds runs fill on path and compares what it says with what is there.
func holds(t *testing.T, path, limit, why string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=fill", "OUT="+path, "LIMIT="+limit)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), why) || !strings.Contains(string(out), "results are not saved: item-") {
		t.Fatalf("%v: %s", err, out)
	}
	j, err := journal.ReadJournal(path)
	if err != nil || j.Torn != 0 || j.Lines < 50 || !strings.Contains(string(out), fmt.Sprintf("saved %d\n", j.Lines)) {
		t.Errorf("the file has %+v, %v; the run said %s", j, err, out)
	}
}

// A file that may not grow further ends whole, and what it lacks is named.
func TestLimitOnFileSize(t *testing.T) {
	holds(t, filepath.Join(t.TempDir(), "out"), "yes", "file too large")
}

// So does one on a disk that is really full.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=200k"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root may mount a small disk")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	holds(t, filepath.Join(dir, "out"), "", "no space left on device")
}

// A disk that is read-only shows when the file is made.
func TestReadOnlyFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_RDONLY, ""); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root may mount a disk")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	if _, err := made(filepath.Join(dir, "out")); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v", err)
	}
}
