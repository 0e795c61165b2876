package command

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// smallDisk is a folder on a disk of 200 KB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=200k"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root may mount a small disk")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// A disk that was full, and has room again while the last calls are in flight: everything
// that was answered is saved, and the end is that of a full disk, not that of a Ctrl-C;
// unless there was one, which has abandoned those calls.
func TestFullDiskThatHasRoomAgain(t *testing.T) {
	for _, abandoned := range []bool{false, true} {
		t.Run(fmt.Sprintf("abandoned %t", abandoned), func(t *testing.T) { roomAgain(t, abandoned, false) })
	}
}

// Standard output cannot be cut: a line feed keeps the piece that was torn from the next result.
func TestFullDiskOfStdoutThatHasRoomAgain(t *testing.T) { roomAgain(t, false, true) }

func roomAgain(t *testing.T, abandoned, toStdout bool) {
	dir, room, first, answered := smallDisk(t), make(chan struct{}), make(chan struct{}, 1), make(chan struct{}, 2000)
	answer := fmt.Sprintf(`{"choices":[{"message":{"content":%q},"finish_reason":"stop"}]}`, strings.Repeat("x", 1000))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // that the caller has left shows only behind it
		select {
		case first <- struct{}{}: // the first is in flight until there is room
			select {
			case <-room:
			case <-r.Context().Done():
				return
			}
		default:
		}
		answered <- struct{}{}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	release := sync.OnceFunc(func() { close(room) })
	defer release() // the server waits for its calls
	out, ballast := filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "ballast")
	must.Do(t, os.WriteFile(ballast, make([]byte, 170_000), 0o600))
	args := []string{promptsFile(t, 1000), "-o", out, "--base-url", server.URL, "--model", "m", "-c", "8"}
	var stdout *os.File
	if toStdout {
		file := must.Get(os.Create(out))(t)
		defer func() { _ = file.Close() }()
		stdout, args[2] = file, "-"
	}
	p := startTo(t, stdout, nil, args...)
	e := p.until(stopping)
	if !strings.Contains(e.Message, "no space left on device") {
		t.Errorf("it stops for another reason: %s", e.Message)
	}
	must.Do(t, os.Remove(ballast))
	want := exit.Output
	if abandoned {
		want = exit.Interrupted
		p.signal(os.Interrupt)
	} else {
		release()
	}
	code, _ := p.end()
	if toStdout {
		repaired, err := journal.Repair(out) // it drops the piece, and finds each line behind it
		if err != nil || len(repaired.Dropped) > 1 {
			t.Errorf("%+v, %v", repaired, err)
		}
		text, err := os.ReadFile(out)
		if repaired.As != "" {
			text, err = os.ReadFile(repaired.As)
		}
		if n := strings.Count("\n"+string(text), "\n{\"id\":\"hr-"); err != nil || strings.Count(string(text), `{"id":"hr-`) != n {
			t.Errorf("a piece is glued to a line: %d lines begin", n)
		}
	}
	if n := wholeLines(t, out); code != want || n != len(answered) && !abandoned || n <= 8 || !strings.HasPrefix(p.last, "headrace run ") {
		t.Errorf("exit code %d, %d lines of %d answers, last line %q", code, n, len(answered), p.last)
	}
}

// A timeline that there is no room for is said, and the run goes well without.
func TestFullDiskOfTheTimeline(t *testing.T) {
	dir := smallDisk(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 200<<10), 0o600))
	_, base := serveFor(t, sim.Config{})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	code, _, errs := inWorld(t, nil, nil, "run", promptsFile(t, 30), "-o", out, "--base-url", base, "--model", "m", "--timeline", filepath.Join(dir, "t.jsonl"))
	if code != exit.OK || wholeLines(t, out) != 30 || !strings.Contains(errs, "no timeline is written to "+dir+"/t.jsonl: no space left on device\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
