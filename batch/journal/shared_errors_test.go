package journal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

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
	before, err := ReadErrorsOf(a, shared)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a, journalLine("x", "")+journalLine("y", ""))
	results, err := ReadJournal(a)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
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
		if err := json.Unmarshal([]byte(journalLine(id, code)), &l); err != nil {
			t.Fatal(err)
		}
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
		write(t, shared, text)
		before, err := ReadErrorsOf(output, shared)
		if err != nil {
			t.Fatal(err)
		}
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
