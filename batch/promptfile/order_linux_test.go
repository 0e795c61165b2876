package promptfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// Where there is no room for the file once more, it stays as it was, all of it is kept,
// and the end is that of a full disk. Once there is room, it is brought into order.
func TestInputOrderWithoutRoom(t *testing.T) {
	var lines []string
	for n := range 300 {
		lines = append(lines, ask(fmt.Sprint(n)))
	}
	d := newFixture(t, lines...)
	d.cfg.Reader.Limit = 280
	d.run()
	slices.Reverse(lines)
	write(t, d.in, fmt.Sprint(lines[0], "\n", lines[1], "\n", lines[299], "\n"))
	whole := must.Get(os.ReadFile(d.out))(t)
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", len(whole)*3/2)); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root may mount a small disk")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	d.out = filepath.Join(dir, "out.jsonl")
	write(t, d.out, string(whole))
	d.cfg.Reader.Limit, d.cfg.InputOrder = 0, true
	sums, asked, _ := d.run()
	if !DiskFull(sums.FilesErr) || sums.Arranged || !sums.Unordered || sums.Unsaved != 0 || asked != "299 298" {
		t.Errorf("asked %q, %+v", asked, sums)
	}
	if got, left := idsIn(t, d.out), files(t, dir); len(got) != 282 || got[0] != "0" || len(left) != 1 {
		t.Errorf("%d lines, first %s; left: %v", len(got), got[0], left)
	}
	must.Do(t, syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=1m"))
	if sums, asked, err := d.run(); err != nil || asked != "" || !sums.Arranged {
		t.Errorf("asked %q, %+v, %v", asked, sums, err)
	}
	if got := idsIn(t, d.out); len(got) != 282 || !slices.Equal(got[:4], []string{"299", "298", "0", "1"}) {
		t.Errorf("%d lines, %q", len(got), got[:4])
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	all := must.Get(os.ReadDir(dir))(t)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}
