package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
)

// Lines for /v1/rerank are run and planned in every form: by url, by the default, by a template,
// and by a query with documents alone. Their usage and cost are those of what was read.
func TestRerankFromTheInputToTheResults(t *testing.T) {
	const asked = `"query":"which river?","documents":["Inn","Enns","Mur"]`
	for how, c := range map[string]struct {
		line string
		args []string
	}{
		"by url":      {`{"custom_id":"a","method":"POST","url":"/v1/rerank","body":{` + asked + `,"top_n":2}}`, nil},
		"bare":        {`{"custom_id":"a",` + asked + `,"top_n":2}`, nil},
		"prompt":      {`{"custom_id":"a","prompt":"which river?","documents":["Inn","Enns","Mur"],"top_n":2}`, []string{"--endpoint", "/v1/rerank"}},
		"by template": {`{"custom_id":"a","q":"river","documents":["Inn","Enns","Mur"]}`, []string{"--endpoint", "/v1/rerank", "--template", "which {{.q}}?", "--param", "top_n=2"}},
	} {
		in := writeLines(t, c.line+"\n")
		out := filepath.Join(filepath.Dir(in), "out.jsonl")
		flags := append([]string{in, "--provider", "sim", "--model", "m", "--price", "1000000,1"}, c.args...)
		code, _, said := inWorld(t, nil, nil, append([]string{"run", "-o", out, "--sim-profile", "fast", "--progress", "plain"}, flags...)...)
		if code != exit.OK || !strings.Contains(said, "jq -c '[.custom_id, .response.body.results]'") {
			t.Errorf("%s: exit code %d: %s", how, code, said)
			continue
		}
		var line struct {
			Response struct {
				Body struct{ Results []struct{ Index int } }
			}
			Headrace struct {
				CostUSD float64 `json:"cost_usd"`
				Usage   struct {
					Input int `json:"input_tokens"`
				}
			}
		}
		if text := read(t, out); json.Unmarshal([]byte(text), &line) != nil || len(line.Response.Body.Results) != 2 || line.Headrace.Usage.Input != 6 || line.Headrace.CostUSD != 6 {
			t.Errorf("%s: %s", how, text)
		}
		code, planned, said := inWorld(t, nil, nil, append([]string{"plan", "--json", "--rpm", "60"}, flags...)...)
		var plan struct {
			Items   int
			Assumed int `json:"output_assumed"`
			Models  []struct {
				Input  float64 `json:"input_tokens"`
				Output float64 `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(planned), &plan); code != exit.OK || err != nil || plan.Items != 1 || plan.Assumed != 0 || len(plan.Models) != 1 || plan.Models[0].Input < 3 || plan.Models[0].Output != 0 {
			t.Errorf("%s: exit code %d: %s%s", how, code, planned, said)
		}
	}
}

// Cohere's own door takes the same lines, as they are, and its searches are no tokens.
func TestRerankAtCohere(t *testing.T) {
	_, base := childSim(t, "--dialect", "cohere")
	in := writeLines(t, `{"query":"which river?","documents":["Inn","Enns"],"top_n":1}`+"\n")
	out := filepath.Join(filepath.Dir(in), "out.jsonl")
	code, _, said := inWorld(t, nil, map[string]string{"A_KEY": "k"}, "run", in, "-o", out, "--provider", "cohere-v2", "--base-url", onHost(t, base, ""), "--api-key-env", "A_KEY", "--model", "rerank-v3.5", "--progress", "plain")
	if text := read(t, out); code != exit.OK || !strings.Contains(text, `"results":[{"index":`) || !strings.Contains(text, `"input_tokens":0`) || strings.Contains(text, "cost_usd") || strings.Contains(text, "translated") {
		t.Errorf("exit code %d: %s%s", code, said, text)
	}
}

// A provider without rerank gets no such lines. The complaint names one that has it, and the way for
// those whose data have these names.
func TestRerankIsRefusedWhereThereIsNone(t *testing.T) {
	in := writeLines(t, `{"query":"q","documents":["a"]}`+"\n")
	for _, provider := range []string{"openai", "anthropic", "cohere"} {
		code, _, said := inWorld(t, nil, nil, "plan", in, "--provider", provider, "--model", "m", "--rpm", "60")
		if want := fmt.Sprintf("%s:1: a line (request body) for /v1/rerank, which this provider does not have", in); code != exit.Usage || !strings.Contains(said, want) || !strings.Contains(said, "--provider cohere-v2 takes lines for /v1/rerank") || !strings.Contains(said, "a template makes prompts of them") {
			t.Errorf("%s: exit code %d: %s", provider, code, said)
		}
	}
}

// The help on lines has both ways to a rerank.
func TestHelpInputHasReranks(t *testing.T) {
	_, help, _ := inWorld(t, nil, nil, "help", "input")
	for _, way := range []string{`{"model":…,"query":…,"documents":[…]}`, "With --endpoint /v1/rerank"} {
		if !strings.Contains(help, way) {
			t.Errorf("no %s in %s", way, help)
		}
	}
}
