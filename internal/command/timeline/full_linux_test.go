package timeline

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/headrace/headrace/internal/command/event"
)

// A full disk ends the timeline, with one notice, and leaves it as it was; the run goes on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root may mount a small disk")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path, chance := dir+"/results.run.jsonl", newChance(3)
	var said notices
	done := 0
	w, err := Open(Config{Path: path, At: noon, Notice: said.say, Progress: func() *event.Progress { done++; return aProgress(done) }})
	must(t, err)
	for n := 1; n <= 200 && said.list() == ""; n++ {
		before := sizeOf(t, path)
		w.Sample(aSample(n, chance))
		for sizeOf(t, path) == before && said.list() == "" { // one that came while it was busy would be merged with the next
			runtime.Gosched()
		}
	}
	w.Close(map[string]string{"event": "summary"})
	if got := said.list(); !strings.Contains(got, "no space left on device") || strings.Contains(got, "\n") {
		t.Errorf("said: %q", got)
	}
	if got := samplesIn(t, path); len(got) == 0 {
		t.Error("nothing is left")
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}
