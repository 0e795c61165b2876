package foreign

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/tests/foreign/part"
)

// apiKey is in the environment of every run, in a variable that its flags name.
const apiKey = "key-of-a-test"

// A result is a line of an output file.
type result struct {
	ID       string `json:"custom_id"`
	Response struct {
		Status int             `json:"status_code"`
		Body   json.RawMessage `json:"body"`
	} `json:"response"`
	Headrace struct {
		Dialect, Finish string
		Text            *string
		Usage           struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		}
	} `json:"headrace"`
}

// run runs a file of lines to its end, which must be exit code 0, and reads the output. No
// line may stand in it twice, and none may be missing.
func run(t *testing.T, lines []string, flags ...string) map[string]result {
	t.Helper()
	dir := t.TempDir()
	input, output := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	if err := os.WriteFile(input, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	argv := append([]string{"run", input, "-o", output, "--api-key-env", "FOREIGN_KEY", "--text", "always"}, flags...)
	cmd := exec.CommandContext(t.Context(), part.Headrace(t), argv...)
	cmd.Env = append(os.Environ(), "FOREIGN_KEY="+apiKey)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", argv, err, said)
	}
	if bytes.Contains(said, []byte(apiKey)) {
		t.Errorf("the key is shown: %s", said)
	}
	results := read(t, output)
	if len(results) != len(lines) {
		t.Fatalf("%d lines of %d: %s", len(results), len(lines), said)
	}
	return results
}

func read(t *testing.T, output string) map[string]result {
	t.Helper()
	data, err := os.ReadFile(output) //nolint:gosec // of this test
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]result{}
	for line := range bytes.Lines(data) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if _, twice := results[r.ID]; twice {
			t.Errorf("%s stands twice", r.ID)
		}
		results[r.ID] = r
	}
	return results
}
