package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/internal/must"
)

func goOn() error { return nil }

func orderOf(ids ...string) *Order {
	o := new(Order)
	for _, id := range ids {
		o.Add(keyOf(id))
	}
	return o
}

func linesOf(ids ...string) string {
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(journalLine(id, ""))
	}
	return text.String()
}

// Whatever order lines stand in, they are brought into the one that is wanted, each as it
// was; those that it does not have stand behind, as they stood. A file that stands so is
// not written.
func TestArrange(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		var all, here []string
		for n := range 60 {
			all = append(all, fmt.Sprint("item", strings.Repeat("x", n%7), n))
		}
		for _, n := range r.Perm(60)[:r.IntN(60)] {
			here = append(here, all[n])
		}
		if seed%5 == 0 && len(here) > 0 {
			here = append(here, here[0]) // one that stands there twice, which none should
		}
		known := all[:r.IntN(61)]
		want := slices.Clone(here)
		slices.SortStableFunc(want, func(a, b string) int { return rankIn(known, a) - rankIn(known, b) })
		path := writeFile(t, linesOf(here...))
		for again, wantMoved := range []bool{!slices.Equal(here, want), false} {
			var w watched
			moved, err := arrange(w.disk(), path, orderOf(known...), goOn)
			if err != nil || moved != wantMoved || (len(w.did) > 0) != wantMoved || textOf(t, path) != linesOf(want...) {
				t.Fatalf("seed %d, time %d: moved %t, want %t, %v, %d steps", seed, again, moved, wantMoved, err, len(w.did))
			}
		}
	}
}

func rankIn(all []string, id string) int {
	if n := slices.Index(all, id); n >= 0 {
		return n
	}
	return len(all)
}

// The new file is on the disk before it has the name. If the disk refuses the new file, or
// somebody stops the work, the old file stays as it was, with nothing next to it.
func TestArrangeAtOnceOrNotAtAll(t *testing.T) {
	before, after := linesOf("c", "a", "b"), linesOf("a", "b", "c")
	path := writeFile(t, before)
	full, enough := errors.New("no space left on device"), errors.New("enough")
	broken := disk.Real()
	broken.SyncData = func(*os.File) error { return full }
	if _, err := arrange(broken, path, orderOf("a", "b", "c"), goOn); !errors.Is(err, full) || textOf(t, path) != before {
		t.Errorf("%v", err)
	}
	for asked := range 6 { // once in the check, for each of three lines, and for each of two stretches
		n := 0
		_, err := Arrange(path, orderOf("a", "b", "c"), func() error {
			if n++; n > asked {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || textOf(t, path) != before {
			t.Errorf("stopped when asked for the time %d: %v", asked+1, err)
		}
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left beside it: %v", left)
	}
	path = writeFile(t, before)
	var w watched
	if moved, err := arrange(w.disk(), path, orderOf("a", "b", "c"), goOn); !moved || err != nil {
		t.Errorf("%t, %v", moved, err)
	}
	if want := []string{"sync " + after, "rename to out.jsonl", "sync folder of out.jsonl"}; !slices.Equal(w.did, want) {
		t.Errorf("got  %q\nwant %q", w.did, want)
	}
}

// A file whose end is not whole, or that is not there, is left alone.
func TestArrangeAtItsEdges(t *testing.T) {
	text := linesOf("b", "a")
	for _, end := range []int{1, 9} {
		path := writeFile(t, text[:len(text)-end])
		if _, err := Arrange(path, orderOf("a", "b"), goOn); !errors.Is(err, ErrChanged) || textOf(t, path) != text[:len(text)-end] {
			t.Errorf("%v", err)
		}
	}
	for _, path := range []string{writeFile(t, ""), filepath.Join(t.TempDir(), "none")} {
		if moved, err := Arrange(path, orderOf("a"), goOn); moved || err != nil {
			t.Errorf("%t, %v", moved, err)
		}
	}
}

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
	must.Do(t, errors.Join(err, err2, first.Start()))
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
	must.Do(t, os.Symlink(path, link))
	lock := must.Get(LockOutput(path))(t)
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
	results := must.Get(ReadJournal(writeFile(t, journalLine("well", ""))))(t)
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
	tail := must.Get(made(link))(t)
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
	must.Do(t, os.WriteFile(path+disk.NextSuffix, []byte(opening[:7]), 0o600))
	if dropped, err := drop(path, &KeySet{}); err != nil || dropped != 1 || textOf(t, path) != journalLine("twice", "server") {
		t.Errorf("%d dropped, %v", dropped, err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	text := journalLine("a", "x") + journalLine("a", "y")
	must.Do(t, errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Mkdir(path+disk.NextSuffix, 0o700)))
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
		j := must.Get(ReadErrorsJournal(path))(t)
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

// ofOutput is a line of an item that failed for an output; "" names none.
func ofOutput(id, output string) string {
	var l Line
	if err := json.Unmarshal([]byte(journalLine(id, "invalid")), &l); err != nil {
		panic(err)
	}
	l.Headrace.Output = output
	return string(AppendLine(nil, &l))
}

// Outputs that share an errors file each see their own failures: how many they are, which
// items need not be asked, and which lines a result makes obsolete. Lines of others stay.
func TestOutputsShareAnErrorsFile(t *testing.T) {
	dir := t.TempDir()
	shared := filepath.Join(dir, "e.jsonl")
	a, b := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")
	text := ofOutput("x", "a.jsonl") + ofOutput("x", "b.jsonl") + ofOutput("y", "b.jsonl") + ofOutput("z", "")
	write(t, shared, text)
	for output, want := range map[string]int{a: 2, b: 3, filepath.Join(dir, "c.jsonl"): 1} {
		j, err := ReadErrorsOf(output, shared)
		if err != nil || j.Keys.Len() != want || j.Lines != 4 || j.Others != 4-want || j.Repeated != 0 || j.Size != int64(len(text)) {
			t.Errorf("%s: %+v, %v", output, j, err)
		}
		if p, err := ReadProgress(output, shared); err != nil || p.Failed != want {
			t.Errorf("%s: %+v, %v", output, p, err)
		}
	}
	before := must.Get(ReadErrorsOf(a, shared))(t)
	write(t, a, journalLine("x", "")+journalLine("y", ""))
	results := must.Get(ReadJournal(a))(t)
	dropped, err := before.DropSuperseded(&results.Keys)
	if want := ofOutput("x", "b.jsonl") + ofOutput("y", "b.jsonl") + ofOutput("z", ""); err != nil || dropped != 1 || textOf(t, shared) != want {
		t.Errorf("%d dropped, %v, left %s", dropped, err, textOf(t, shared))
	}
}

// In the errors file that is the output's by its name, all lines are the output's: both may
// have been given other names.
func TestRenamedOutputKeepsItsFailures(t *testing.T) {
	dir := t.TempDir()
	output := filepath.Join(dir, "new.jsonl")
	write(t, ErrorsPath(output), ofOutput("x", "old.jsonl"))
	if j, err := ReadErrorsOf(output, ErrorsPath(output)); err != nil || j.Keys.Len() != 1 || j.Others != 0 {
		t.Errorf("%+v, %v", j, err)
	}
}

// An output is named by its way from the errors file, however both are written.
func TestOutputName(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	t.Chdir(dir)
	for _, c := range [][3]string{
		{"e.jsonl", "a.jsonl", "a.jsonl"},
		{"e.jsonl", filepath.Join(dir, "a.jsonl"), "a.jsonl"},
		{"sub/e.jsonl", "a.jsonl", "../a.jsonl"},
		{"e.jsonl", "sub/../sub/a.jsonl", "sub/a.jsonl"},
		{"e.jsonl", "-", "-"},
		{"e.jsonl", "", "-"},
	} {
		if got := OutputName(c[0], c[1]); got != c[2] {
			t.Errorf("%s in %s is named %q, want %q", c[1], c[0], got, c[2])
		}
	}
}

// Only outputs that end in .jsonl lose that ending in the names of the files next to them.
func TestBeside(t *testing.T) {
	for output, want := range map[string]string{
		"r.jsonl": "r.s.json", "r.json": "r.json.s.json", "r": "r.s.json", "d.x/r.txt": "d.x/r.txt.s.json", "r.jsonl.gz": "r.s.json", "r.json.gz": "r.json.gz.s.json",
	} {
		if got := Beside(output, ".s.json"); got != want {
			t.Errorf("beside %s: %s, want %s", output, got, want)
		}
	}
}

// Once a run has read its whole input, lines of before about what could not be asked go: what
// still cannot be asked has a new line behind them. Other failures, other outputs' and those of another input stay.
func TestCorrectedLinesAreDropped(t *testing.T) {
	unasked := func(id, code, input, output string) string {
		var l Line
		must.Do(t, json.Unmarshal([]byte(journalLine(id, code)), &l))
		l.Headrace.Output, l.Error.Message = output, input+":1: not JSON"
		return string(AppendLine(nil, &l))
	}
	bad := func(id, output string) string { return unasked(id, CodeInvalidLine, "in.jsonl", output) }
	x := unasked("x", CodeUntranslatable, "b.csv", "")
	output := filepath.Join(t.TempDir(), "out.jsonl")
	shared := filepath.Join(filepath.Dir(output), "e.jsonl")
	stays := unasked("y", CodeInvalidLine, "another in.jsonl", "out.jsonl") + unasked("z", CodeInvalidLine, "in.jsonl2", "out.jsonl") + journalLine("u", "timeout") + bad("theirs", "other.jsonl")
	text := bad("corrected", "out.jsonl") + bad("still", "") + x + stays
	for _, inputs := range [][]string{{"b.csv", "in.jsonl"}, nil} {
		met := must.Get(ReadErrorsOf(output, writeFile(t, text)))(t)
		met.Still(keyOf("corrected"))
		met.Still("no key")
		if n, err := met.DropSuperseded(&KeySet{}, inputs...); err != nil || n != 2 && inputs != nil || n != 0 && inputs == nil {
			t.Errorf("inputs %q, of which a line stands: dropped %d, %v", inputs, n, err)
		}
		write(t, shared, text)
		before := must.Get(ReadErrorsOf(output, shared))(t)
		write(t, shared, text+bad("still", "out.jsonl"))
		want := stays + bad("still", "out.jsonl")
		if inputs == nil {
			want = bad("corrected", "out.jsonl") + x + want
		}
		if _, err := before.DropSuperseded(&KeySet{}, inputs...); err != nil || textOf(t, shared) != want {
			t.Errorf("inputs %q: %v, left\n%s\nwant\n%s", inputs, err, textOf(t, shared), want)
		}
	}
}
