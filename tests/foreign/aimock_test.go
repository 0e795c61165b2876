package foreign

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/tests/foreign/part"
)

// faces are the providers that aimock plays and headrace calls, each with what is added to
// its address: paths as their makers have them.
var faces = []struct {
	provider, path string
	flags          []string
	native         string // a line in the dialect's own words, if that is not OpenAI's
}{
	{provider: "openai", path: "/v1"},
	{provider: "azure", path: "/openai/v1"},
	{provider: "azure-deployments", path: "/openai"},
	{provider: "cohere", path: "/compatibility/v1"},
	{provider: "google-openai", path: "/v1beta/openai"},
	{provider: "openrouter", path: "/api/v1"},
	{provider: "groq", path: "/openai/v1"},
	{provider: "anthropic", native: anthropicLine},
	{provider: "gemini", path: "/v1beta", native: geminiLine},
	{provider: "vertex", path: "/v1/projects/p/locations/l/publishers/google", flags: []string{"--project", "p", "--location", "l"}, native: geminiLine},
	{provider: "bedrock", flags: []string{"--region", region}, native: bedrockLine},
}

// Each line says the same: a system, a question, and bounds.
const (
	promptLine    = `{"id":"prompt","prompt":"What is in the river?","system":"Be brief.","max_tokens":50}`
	chatLine      = `{"custom_id":"chat","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":50,"temperature":0.5,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"What is in"},{"type":"text","text":"the river?"}]}]}}`
	anthropicLine = `{"custom_id":"native","params":{"model":"m","max_tokens":50,"system":"Be brief.","messages":[{"role":"user","content":"What is in the river?"}]}}`
	geminiLine    = `{"key":"native","request":{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"What is in the river?"}]}],"generationConfig":{"maxOutputTokens":50}}}`
	bedrockLine   = `{"recordId":"native","modelInput":{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"What is in the river?"}]}],"inferenceConfig":{"maxTokens":50}}}`
)

// heard holds what aimock says that it understood.
type heard struct {
	Model       string
	Said        []string
	Bound       int
	Temperature float64
}

// aimock, a mock of many providers that other people wrote, accepts what we send to each of
// them, and understands it: prompts, chats that are translated, and lines of their own.
func TestAimockAccepts(t *testing.T) {
	url := part.Serve(t, part.Node(t, "aimock.mjs"), "listening on ")
	for _, face := range faces {
		t.Run(face.provider, func(t *testing.T) {
			t.Parallel()
			lines := []string{promptLine, chatLine}
			if face.native != "" {
				lines = append(lines, face.native)
			}
			flags := append([]string{"--provider", face.provider, "--base-url", url + face.path, "--model", "m"}, face.flags...)
			for id, r := range run(t, lines, flags...) {
				understood(t, id, r)
			}
		})
	}
}

func understood(t *testing.T, id string, r result) {
	t.Helper()
	if r.Response.Status != 200 || r.Headrace.Text == nil {
		t.Fatalf("%s: status %d, %s", id, r.Response.Status, r.Response.Body)
	}
	var h heard
	if err := json.Unmarshal([]byte(*r.Headrace.Text), &h); err != nil {
		t.Fatalf("%s: %v: %q", id, err, *r.Headrace.Text)
	}
	// Of a text in two parts some hear one, and each joins them in its way.
	said := slices.Concat(h.Said, []string{"", ""})[:2]
	parts := strings.HasPrefix(said[1], "user: What is in") && strings.HasSuffix(said[1], "the river?")
	if h.Model != "m" || h.Bound != 50 || len(h.Said) != 2 || said[0] != "system: Be brief." || !parts || id != "chat" && said[1] != "user: What is in the river?" {
		t.Errorf("%s: it understood %+v", id, h)
	}
	if id == "chat" && h.Temperature != 0.5 {
		t.Errorf("%s: temperature %v", id, h.Temperature)
	}
}

// The other operations of OpenAI's dialect, at each address that has them.
func TestAimockAcceptsOperations(t *testing.T) {
	url := part.Serve(t, part.Node(t, "aimock.mjs"), "listening on ")
	bodies := map[string]string{
		"/v1/responses":   `{"model":"m","instructions":"Be brief.","input":"What is in the river?","max_output_tokens":50}`,
		"/v1/embeddings":  `{"model":"m","input":["What is in the river?","And above it?"]}`,
		"/v1/moderations": `{"model":"m","input":"What is in the river?"}`,
	}
	var lines []string
	for operation, body := range bodies {
		lines = append(lines, fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":%q,"body":%s}`, operation, operation, body))
	}
	for id, r := range run(t, lines, "--provider", "openai", "--base-url", url+"/v1") {
		if r.Response.Status != 200 {
			t.Errorf("%s: %d, %s", id, r.Response.Status, r.Response.Body)
		}
		if (r.Headrace.Text != nil) != (id == "/v1/responses") {
			t.Errorf("%s: text %v", id, r.Headrace.Text)
		}
	}
}
