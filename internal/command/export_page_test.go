package command

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// readers runs the lines of each program that headrace help data names, and needs has what must be there to run them.
var readers = map[string]struct{ needs, runs []string }{
	"pandas":  {[]string{"python3", "-c", "import pandas"}, []string{"python3", "-c"}},
	"python3": {[]string{"python3", "-c", ""}, []string{"python3", "-c"}},
	"duckdb":  {[]string{"duckdb", "-c", "SELECT 1"}, []string{"duckdb", "-c"}},
	"jq":      {[]string{"jq", "-n", "1"}, []string{"sh", "-ec"}},
	"R":       {[]string{"Rscript", "-e", "library(jsonlite)"}, []string{"Rscript", "-e"}},
}

// exportedHere makes results.jsonl of odd answers and of one failure, its table, and prompts.jsonl in a folder.
func exportedHere(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("prompts.jsonl", []byte(`{"prompt":"one, two","id":"a"}`+"\n"+`{"prompt":"two","id":"b"}`+"\n"+`{"prompt":"three","id":"c","max_tokens":-1}`+"\n"), 0o600))
	code, _, said := inWorld(t, strings.NewReader(""), nil, "run", "prompts.jsonl", "-o", "results.jsonl", "--provider", "sim", "--sim-profile", "fast", "--progress", "none")
	if code != 1 {
		t.Fatalf("%d: %s", code, said)
	}
	if code, _, said := inWorld(t, strings.NewReader(""), nil, "export", "results.jsonl", "-o", "results.csv"); code != 0 {
		t.Fatalf("%d: %s", code, said)
	}
}

// The lines of headrace help data do what they say, with each program that is here.
func TestLinesForDataPeople(t *testing.T) {
	exportedHere(t)
	_, help, _ := inWorld(t, strings.NewReader(""), nil, "help", "data")
	blocks := regexp.MustCompile(`(?m)^(\w+)\n((?:  .*\n)+)`).FindAllStringSubmatch(help, -1)
	if len(blocks) != len(readers) {
		t.Errorf("%d programs in the help", len(blocks))
	}
	for _, block := range blocks {
		reader := readers[block[1]]
		if reader.runs == nil {
			t.Errorf("nothing runs %s", block[1])
			continue
		}
		if exec.Command(reader.needs[0], reader.needs[1:]...).Run() != nil {
			t.Logf("there is no %s here", block[1])
			continue
		}
		code := regexp.MustCompile(`(?m)^  `).ReplaceAllString(block[2], "")
		said, err := exec.Command(reader.runs[0], append(reader.runs[1:], code)...).CombinedOutput()
		if err != nil || len(said) == 0 {
			t.Errorf("%s: %v: %s", block[1], err, said)
		}
	}
}

// The module csv of Python reads the texts that stand in the result files.
func TestOthersReadTheTable(t *testing.T) {
	exportedHere(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here")
	}
	const compare = `
import csv, json
table = {row["id"]: row for row in csv.DictReader(open("results.csv", newline="", encoding="utf-8"))}
lines = [json.loads(line) for name in ("results.jsonl", "results.errors.jsonl") for line in open(name, encoding="utf-8")]
assert len(table) == len(lines) == 3, table
for line in lines:
    row = table[line["custom_id"]]
    answer = "" if line["error"] else line["response"]["body"]["choices"][0]["message"]["content"]
    assert row["text"] == answer, (row, line)
    assert row["error"] == (line["error"] or {}).get("code", ""), (row, line)
`
	if said, err := exec.Command("python3", "-c", compare).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// The commands of the page about export do what it says, and it names no flag that is not there.
func TestPageOfExport(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/export.md"))(t))
	exportedHere(t)
	_, help, _ := inWorld(t, strings.NewReader(""), nil, "export", "--help")
	for _, flag := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(page, -1) {
		if !strings.Contains(help, flag) {
			t.Errorf("there is no %s", flag)
		}
	}
	ran := 0
	for _, line := range regexp.MustCompile(`(?m)^headrace (export .*)$`).FindAllStringSubmatch(page, -1) {
		words := strings.Fields(regexp.MustCompile(` +#.*$`).ReplaceAllString(line[1], ""))
		_ = os.Remove("results.csv") // it has other columns
		if code, out, said := inWorld(t, strings.NewReader(""), nil, words...); code != 0 {
			t.Errorf("%s: %d: %s%s", line[1], code, out, said)
		}
		ran++
	}
	if ran < 5 {
		t.Errorf("%d commands were run", ran)
	}
}
