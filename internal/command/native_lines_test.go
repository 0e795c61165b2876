package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// natives are lines in the words of a provider, with a body as nobody's encoder writes it:
// spaces, escapes and numbers are the user's own.
var natives = []struct {
	provider, dialect string
	path              string // of the base URL
	line, body        string // with %d for the item, and %s for the body
}{
	{
		"anthropic", "anthropic", "",
		`{"custom_id":"%d","params":%s}`, `{"max_tokens" : 64,"model":"m", "messages":[ {"role":"user","content":"Fl\u00fcsse %d: ü \" "}] }`,
	},
	{
		"gemini", "gemini", "",
		`{"key":"%d","request":%s}`, `{"contents":[ {"parts":[{"text":"Fl\u00fcsse %d: ü \" "}],"role":"user"}] , "generationConfig":{"temperature":1.0e0}}`,
	},
	{
		"bedrock", "converse", "",
		`{"recordId":"%d","modelInput":%s}`, `{"messages":[ {"role":"user","content":[{"text":"Fl\u00fcsse %d: ü \" "}]}] , "inferenceConfig":{"temperature":1.0e0}}`,
	},
	{
		"azure", "azure", "/openai/v1",
		`{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":%s}`, `{"model":"m" ,"messages":[ {"role":"user","content":"Fl\u00fcsse %d: ü \" "}] ,"temperature":1.0e0}`,
	},
	{
		"azure-deployments", "azure", "/openai",
		`{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":%s}`, `{"messages":[ {"role":"user","content":"Fl\u00fcsse %d: ü \" "}] ,"temperature":1.0e0, "model" :"m"}`,
	},
}

// nativeLines returns the number of lines of each kind: HEADRACE_NATIVE_LINES, or as many as
// take a second or two.
func nativeLines(t *testing.T) int {
	chosen := os.Getenv("HEADRACE_NATIVE_LINES")
	if chosen == "" {
		return 120
	}
	n := must.Get(strconv.Atoi(chosen))(t)
	return n
}

// Each line of a provider's own form comes to it byte for byte, and has one answer, through
// faults, connections that break and a limit that is met.
func TestNativeLinesArriveAsTheyAre(t *testing.T) {
	for _, c := range natives {
		t.Run(c.provider, func(t *testing.T) {
			t.Parallel()
			_, base := childSim(t, "--dialect", c.dialect, "--rpm", "6000", "--retry-after", "always", "--headers", "--errors", "500=0.05,reset=0.02")
			at, n := onHost(t, base, c.path), nativeLines(t)
			sent := map[string]bool{}
			var lines strings.Builder
			for i := range n {
				body := fmt.Sprintf(c.body, i)
				sum := sha256.Sum256([]byte(body))
				sent[hex.EncodeToString(sum[:])] = true
				fmt.Fprintf(&lines, c.line+"\n", i, body)
			}
			in, out := writeLines(t, lines.String()), filepath.Join(t.TempDir(), "out.jsonl")
			runs(t, []string{"A_KEY=k"}, in, "-o", out, "--provider", c.provider, "--base-url", at, "--api-key-env", "A_KEY", "--model", "m")
			ids, results := map[string]bool{}, resultsOf(t, out)
			for _, line := range results {
				ids[line.CustomID] = true
			}
			if len(results) != n || len(ids) != n {
				t.Errorf("%d lines with %d ids, want %d", len(results), len(ids), n)
			}
			var books sim.Books
			must.Do(t, json.Unmarshal([]byte(fetched(t, "GET", onHost(t, base, "/sim/books?bodies"), "")), &books))
			for sum := range books.Bodies {
				if !sent[sum] {
					t.Errorf("a body that is in no line: SHA-256 %s", sum)
				}
			}
			if len(books.Bodies) != n || books.Accepted != n || books.MaxRepeats != 1 {
				t.Errorf("%d bodies, %d answered, each up to %d times; want %d", len(books.Bodies), books.Accepted, books.MaxRepeats, n)
			}
		})
	}
}

// onHost is another path on the host of a URL.
func onHost(t *testing.T, base, path string) string {
	t.Helper()
	u := must.Get(url.Parse(base))(t)
	return u.Scheme + "://" + u.Host + path
}

// resultLine holds the fields of a result line that these tests look at.
type resultLine struct {
	CustomID string `json:"custom_id"`
	Response struct {
		Body json.RawMessage `json:"body"`
	} `json:"response"`
	Headrace struct {
		Line       int    `json:"line"`
		Lane       string `json:"lane"`
		Model      string `json:"model"`
		Provider   string `json:"provider"`
		Served     string `json:"served"`
		Fallback   bool   `json:"fallback"`
		Attempts   int    `json:"attempts"`
		Text       string `json:"text"`
		Translated bool   `json:"translated"`

		CostUSD float64 `json:"cost_usd"`
		Usage   struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		} `json:"usage"`
	} `json:"headrace"`
}

func resultsOf(t *testing.T, file string) (lines []resultLine) {
	t.Helper()
	for text := range strings.Lines(read(t, file)) {
		var line resultLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		lines = append(lines, line)
	}
	return lines
}

func writeLines(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "in.jsonl")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// runs is a run in a process of its own that succeeds, with no variables but these. It gives
// what was said.
func runs(t *testing.T, env []string, args ...string) string {
	t.Helper()
	code, said := runsTo(t, env, args...)
	if code != exit.OK {
		t.Fatalf("headrace run %s: exit code %d: %s", strings.Join(args, " "), code, said)
	}
	return said
}

// runsTo is a run in a process of its own, whatever comes of it. It does not see other runs of the
// machine, which may use the same made-up key.
func runsTo(t *testing.T, env []string, args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.Command("headrace", append([]string{"run", "--progress", "none"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), schemaVariable+"="+os.Getenv(schemaVariable), "XDG_RUNTIME_DIR="+cmd.Dir)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}
