package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/disk"
)

func init() { children["lock"] = lockAndWait }

// lockAndWait locks the output that its environment names, says so, and waits.
func lockAndWait() int {
	if _, err := LockOutput(os.Getenv("OUT")); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("locked")
	_, _ = io.ReadAll(os.Stdin)
	return 0
}

// A second process is refused and told the pid of the first; when that was killed,
// what it left is taken over without a question.
func TestLockKeepsOthersOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	first := exec.CommandContext(t.Context(), os.Args[0])
	first.Env = append(os.Environ(), childEnv+"=lock", "OUT="+path)
	in, err := first.StdinPipe()
	out, err2 := first.StdoutPipe()
	if err := errors.Join(err, err2, first.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	said := make([]byte, 7)
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "locked\n" {
		t.Fatalf("%s %v", said, err)
	}
	_, err = LockOutput(path)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d: wait", first.Process.Pid)) {
		t.Errorf("got %v", err)
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	lock, err := LockOutput(path)
	if err != nil {
		t.Fatalf("a stale lock: %v", err)
	}
	if text, _ := os.ReadFile(path + LockSuffix); string(text) != strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("the lock file holds %q", text)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + LockSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is left: %v", err)
	}
}

// Two names of one output have one lock.
func TestLockOfALink(t *testing.T) {
	path := writeFile(t, journalLine("a", ""))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	lock, err := LockOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock() }()
	if _, err := LockOutput(link); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v", err)
	}
}

// The old file is kept, under a name that was free.
func TestStartOverKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if kept, err := StartOver(path); kept != "" || err != nil {
		t.Errorf("nothing there: %q, %v", kept, err)
	}
	for n, want := range []string{path + ".bak", path + ".bak.1", path + ".bak.2"} {
		write(t, path, strconv.Itoa(n))
		if kept, err := StartOver(path); kept != want || err != nil || textOf(t, want) != strconv.Itoa(n) {
			t.Errorf("%q, %v, want %q", kept, err, want)
		}
	}
	write(t, path, "the prompts")
	for _, others := range [][]string{{path}, {filepath.Dir(path) + "/./out"}} {
		if _, err := StartOver(path, others...); !errors.Is(err, ErrSameFile) || textOf(t, path) != "the prompts" {
			t.Errorf("the input as output: %v", err)
		}
	}
	if _, err := StartOver(filepath.Dir(path)); !errors.Is(err, ErrDirectory) {
		t.Errorf("a folder: %v", err)
	}
}

// drop drops the superseded lines of an errors file that no run has written to since.
func drop(path string, results *KeySet) (dropped int, err error) {
	return (&Journal{path: path}).DropSuperseded(results)
}

// An item that was tried again has one line in both files together: its result, or
// what it failed of last. Lines of others stay, to the byte.
func TestDropSuperseded(t *testing.T) {
	results, err := ReadJournal(writeFile(t, journalLine("well", "")))
	if err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, journalLine("well", "timeout")+journalLine("twice", "timeout")+
		journalLine("once", "invalid")+journalLine("twice", "server")+journalLine("twice", "unknown"))
	dropped, err := drop(path, &results.Keys)
	if want := journalLine("once", "invalid") + journalLine("twice", "unknown"); err != nil || dropped != 3 || textOf(t, path) != want {
		t.Errorf("%d dropped, %v, left %s", dropped, err, textOf(t, path))
	}
	before, _ := os.Stat(path)
	dropped, err = drop(path, &results.Keys)
	after, _ := os.Stat(path)
	if err != nil || dropped != 0 || !os.SameFile(before, after) || before.Mode().Perm() != 0o600 {
		t.Errorf("the second time: %d dropped, %v, same file %v", dropped, err, os.SameFile(before, after))
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left beside it: %v", left)
	}
	if dropped, err := drop(path+".none", &results.Keys); dropped != 0 || err != nil {
		t.Errorf("no errors file: %d, %v", dropped, err)
	}
}

// A link to a file that is rewritten, or put aside, stays one, and so does who may read
// the file.
func TestLinksStayLinks(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "disk", "e.jsonl"), filepath.Join(dir, "e.jsonl")
	text := journalLine("twice", "timeout") + journalLine("twice", "server")
	err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o640), os.Chmod(file, 0o640))
	if err = errors.Join(err, os.Symlink("disk/e.jsonl", link)); err != nil {
		t.Skip(err)
	}
	if dropped, err := drop(link, &KeySet{}); err != nil || dropped != 1 || textOf(t, file) != journalLine("twice", "server") {
		t.Errorf("%d dropped, %v: %s", dropped, err, textOf(t, file))
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	kept, err := StartOver(link)
	if err != nil || kept != realName(file)+".bak" || textOf(t, kept) != journalLine("twice", "server") {
		t.Errorf("kept as %q, %v", kept, err)
	}
	tail, err := made(link)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tail.Close(), PutBack(kept, link)); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("what had come under the name was overwritten: %v", err)
	}
	if err := errors.Join(os.Remove(file), PutBack(kept, link)); err != nil || textOf(t, file) != journalLine("twice", "server") {
		t.Error(err)
	}
	if to, err := os.Readlink(link); err != nil || to != "disk/e.jsonl" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// What a crash has left of a rewrite is taken away by the next; what is no file of ours
// under that name stays, and is in the way.
func TestRewriteAfterACrash(t *testing.T) {
	path := writeFile(t, journalLine("twice", "timeout")+journalLine("twice", "server"))
	if err := os.WriteFile(path+disk.NextSuffix, []byte(opening[:7]), 0o600); err != nil {
		t.Fatal(err)
	}
	if dropped, err := drop(path, &KeySet{}); err != nil || dropped != 1 || textOf(t, path) != journalLine("twice", "server") {
		t.Errorf("%d dropped, %v", dropped, err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	text := journalLine("a", "x") + journalLine("a", "y")
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Mkdir(path+disk.NextSuffix, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := drop(path, &KeySet{}); !errors.Is(err, disk.ErrInTheWay) || textOf(t, path) != text {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path + disk.NextSuffix); err != nil {
		t.Error(err)
	}
}

// An errors file that is there is opened before its first line, though it be empty: what
// cannot be written to shows then. One that is not there is not made.
func TestEmptyFileIsOpenedAtOnce(t *testing.T) {
	for _, path := range []string{writeFile(t, ""), filepath.Join(t.TempDir(), "none")} {
		j, err := ReadErrorsJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		_, absent := os.Stat(path)
		tail, err := j.AppendLazily()
		if err != nil || (tail.File == nil) != (absent != nil) {
			t.Errorf("%s: opened %t, %v", path, tail.File != nil, err)
		}
		if err := tail.Close(); err != nil {
			t.Error(err)
		}
	}
}
