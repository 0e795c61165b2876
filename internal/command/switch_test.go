package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// doors of the simulated provider, by the name of the vendor that each looks like.
var simDoors = []struct{ provider, dialect string }{
	{"openai", "openai"}, {"anthropic", "anthropic"}, {"gemini", "gemini"}, {"bedrock", "converse"},
}

// simAs serves a vendor's dialect, and gives the flags that have a run call it.
func simAs(t *testing.T, dialect, provider string) (flags []string, base string) {
	t.Helper()
	_, base = childSim(t, "--dialect", dialect)
	return []string{"--provider", provider, "--base-url", base, "--api-key-env", "A_KEY", "--model", "m"}, base
}

func booksAt(t *testing.T, base string) (b sim.Books) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(fetched(t, "GET", onHost(t, base, "/sim/books"), "")), &b))
	return b
}

// Every provider takes the same prompt file, and all answers are read in one way. A user who
// continues an output at another provider buys nothing twice, as keys are of the lines.
func TestOnePromptFileForAll(t *testing.T) {
	const prompts = 300
	var text strings.Builder
	for i := range prompts {
		fmt.Fprintf(&text, `{"prompt":"What is %d times two?","system":"Be short.","id":"p%d","temperature":0.5}`+"\n", i, i)
	}
	in, env := writeLines(t, text.String()), []string{"A_KEY=k"}
	flags, bases, outputs := make([][]string, len(simDoors)), make([]string, len(simDoors)), make([]string, len(simDoors))
	for i, door := range simDoors {
		flags[i], bases[i] = simAs(t, door.dialect, door.provider)
		outputs[i] = filepath.Join(t.TempDir(), "out.jsonl")
		runs(t, env, append([]string{in, "-o", outputs[i], "--text", "always"}, flags[i]...)...)
		ids := map[string]bool{}
		for _, line := range resultsOf(t, outputs[i]) {
			if ids[line.CustomID] = true; !strings.HasPrefix(line.Headrace.Text, "Simulated answer ") || line.Headrace.Lane != door.provider+"/m" {
				t.Errorf("%s: %+v", door.provider, line.Headrace)
			}
		}
		if b := booksAt(t, bases[i]); len(ids) != prompts || b.Received != prompts {
			t.Errorf("%s: %d answers of %d calls", door.provider, len(ids), b.Received)
		}
	}
	for i, output := range outputs {
		for j, door := range simDoors {
			runs(t, env, append([]string{in, "-o", output}, flags[j]...)...)
			if b := booksAt(t, bases[j]); b.Received != prompts {
				t.Fatalf("the output of %s, gone on with at %s: %d calls more", simDoors[i].provider, door.provider, b.Received-prompts)
			}
		}
	}
}

// An output that is half done at one provider is finished at the next, and each line is
// answered once.
func TestFinishedElsewhere(t *testing.T) {
	const prompts = 60
	var text strings.Builder
	for i := range prompts {
		fmt.Fprintf(&text, `{"prompt":"What is %d times two?"}`+"\n", i)
	}
	in, out, calls := writeLines(t, text.String()), filepath.Join(t.TempDir(), "out.jsonl"), 0
	for i, door := range simDoors {
		flags, base := simAs(t, door.dialect, door.provider)
		runs(t, []string{"A_KEY=k"}, append([]string{in, "-o", out, "--limit", fmt.Sprint((i + 1) * prompts / len(simDoors))}, flags...)...)
		calls += booksAt(t, base).Received
	}
	lanes, ids := map[string]int{}, map[string]bool{}
	for _, line := range resultsOf(t, out) {
		ids[line.CustomID] = true
		lanes[line.Headrace.Lane]++
	}
	if len(ids) != prompts || calls != prompts || len(lanes) != len(simDoors) || lanes["gemini/m"] != prompts/len(simDoors) {
		t.Errorf("%d lines of %d calls, by lane %v", len(ids), calls, lanes)
	}
}
