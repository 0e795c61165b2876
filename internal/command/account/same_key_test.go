//go:build unix

package account

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
)

// Runs with one key find each other by pid and output, those with another do not; one that leaves is gone, and so is
// one whose process died, with its file. Nothing in the folder has the key, and nobody else can read it.
func TestNeighboursFindEachOther(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "headrace")
	const key = "sk-some-long-key"
	a := joinNeighbours(folder, key, neighbour{Version: 1, PID: 11, Output: "/a"}, 1)
	if a == nil || len(a.others()) != 0 {
		t.Fatalf("alone: %v", a)
	}
	b := joinNeighbours(folder, key, neighbour{Version: 1, PID: 12, Output: "/b"}, 1)
	c := joinNeighbours(folder, "another key", neighbour{Version: 1, PID: 13, Output: "/c"}, 1)
	defer c.leave()
	if got := a.others(); len(got) != 1 || got[0].PID != 12 || got[0].Output != "/b" {
		t.Errorf("the first finds %v", got)
	}
	if got := b.others(); len(got) != 1 || got[0].PID != 11 || len(c.others()) != 0 {
		t.Errorf("the second finds %v, the one with another key %v", got, c.others())
	}
	for _, e := range filesOfRuns(t, folder) {
		info, err := os.Stat(filepath.Join(folder, e))
		if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(e+textOfRun(t, filepath.Join(folder, e)), key) {
			t.Errorf("%s: %v, %v", e, info, err)
		}
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	_ = b.lock.Close() // as when its process is killed
	must.Do(t, os.WriteFile(filepath.Join(folder, b.prefix+"notes"), []byte("mine"), 0o600))
	if got := a.others(); len(got) != 0 {
		t.Errorf("a run that died is found: %v", got)
	}
	if got := filesOfRuns(t, folder); len(got) != 3 || textOfRun(t, filepath.Join(folder, b.prefix+"notes")) != "mine" {
		t.Errorf("in the folder are %q", got)
	}
	if a.leave(); len(filesOfRuns(t, folder)) != 2 {
		t.Errorf("after it has left: %q", filesOfRuns(t, folder))
	}
}

// Where there is no folder to meet in, a run has no neighbours and goes on: none can be made, it is a file, or a link.
func TestNoFolderForNeighbours(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must.Do(t, os.Symlink(t.TempDir(), filepath.Join(dir, "link")))
	for _, folder := range []string{"no/such", "file", "link", "file/in"} {
		if n := joinNeighbours(filepath.Join(dir, folder), "k", neighbour{Version: 1, PID: 1, Output: "/o"}, 1); n != nil {
			t.Errorf("%s: %+v", folder, n)
		}
	}
	none := func(string) (string, bool) { return "", false }
	xdg := func(string) (string, bool) { return "/run/user/7", true }
	relative := func(string) (string, bool) { return "run", true }
	if got := world.RuntimeFolder(xdg); got != "/run/user/7/headrace" {
		t.Error(got)
	}
	for _, env := range []func(string) (string, bool){none, relative} {
		if got := world.RuntimeFolder(env); filepath.Dir(got) != filepath.Clean(os.TempDir()) || !strings.HasPrefix(filepath.Base(got), "headrace-") {
			t.Error(got)
		}
	}
}

// The folder of another user, who could put other files there, is not written to, and nothing in it is believed.
func TestForeignFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "headrace")
	n := joinNeighbours(folder, "k", neighbour{Version: 1, PID: 12, Output: "a server", Serve: "http://127.0.0.1:1"}, 1)
	defer n.leave()
	must.Do(t, os.WriteFile(TokenPath(folder, "127.0.0.1:1"), []byte("hr-token"), 0o600))
	a := Account{World: &world.World{Runtime: folder}}
	if token, _ := a.tokenAt("127.0.0.1:1"); token != "hr-token" || serveWith(folder, "k") == "" {
		t.Errorf("its own folder: %q", token)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	must.Do(t, os.Chown(folder, 12345, 12345))
	if joinNeighbours(folder, "k", neighbour{Version: 1, PID: 13}, 1) != nil {
		t.Error("a run leaves its file there")
	}
	if token, path := a.tokenAt("127.0.0.1:1"); token != "" || path != "" || serveWith(folder, "k") != "" {
		t.Errorf("it takes %q", token)
	}
}

func filesOfRuns(t *testing.T, folder string) (names []string) {
	t.Helper()
	all := must.Get(os.ReadDir(folder))(t)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func textOfRun(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
}

// A run that has found no server to share with names one that comes later. One that did not let it in is named as any
// other process.
func TestALaterServeIsNamed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "headrace")
	run := joinNeighbours(folder, "k", neighbour{Version: 1, PID: 11, Output: "/a"}, 1)
	defer run.leave()
	serve := joinNeighbours(folder, "k", neighbour{Version: 1, PID: 12, Output: "headrace serve at http://127.0.0.1:1", Serve: "http://127.0.0.1:1"}, 1)
	defer serve.leave()
	for _, test := range []struct {
		shares  bool
		refused string
		want    string
	}{
		{want: "headrace serve of process 12 has the same key: add --through http://127.0.0.1:1, or --share, and one line paces both"},
		{shares: true, want: "headrace serve of process 12, at http://127.0.0.1:1, has the same key, and this run calls the provider: to go through it, stop this run and start it again"},
		{shares: true, refused: "http://127.0.0.1:1", want: "process 12 calls with the same key, for headrace serve at http://127.0.0.1:1: they draw on the same limits, and each may be refused because of the other"},
	} {
		run.shares, run.refused = test.shares, test.refused
		said := ""
		if !run.notify(func(_ event.Code, text string) { said = text }) || said != test.want {
			t.Errorf("%+v: %s", test, said)
		}
	}
}
