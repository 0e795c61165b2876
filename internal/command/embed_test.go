package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
)

// embedded are providers into whose words embeddings of OpenAI's are put.
var embedded = []struct {
	provider, dialect, model string
	more                     string // of a body that is taken
	shapes                   string // where the vectors are, of one text and of several
	refused, field, why      string // of a body that is not
}{
	{"gemini", "gemini", "gemini-embedding-001", `,"dimensions":8`, `"embedding":{"values":[ "embeddings":[{"values":[`, `"encoding_format":"base64"`, "encoding_format", `is not "float"`},
	{"bedrock", "converse", "amazon.titan-embed-text-v2:0", `,"dimensions":256`, `"embedding":[`, `"dimensions":0`, "dimensions", "is not a whole number"},
	{"bedrock", "converse", "us.cohere.embed-v4:0", `,"dimensions":256,"input_type":"search_document"`, `"embeddings":{"float":[[ "embeddings":{"float":[[`, `"dimensions":256`, "input_type", "is missing, and one is demanded"},
	{"cohere-v2", "cohere", "embed-v4.0", `,"dimensions":256,"input_type":"search_document"`, `"embeddings":{"float":[[ "meta":`, `"dimensions":256`, "input_type", "is missing, and one is demanded"},
}

// Lines for /v1/embeddings are translated where another dialect says the same, planned without a
// call, and their answers stay as they came, with what they used and cost. The rest is refused by
// file, line and field.
func TestEmbeddingsGoToOtherDialects(t *testing.T) {
	for _, c := range embedded {
		t.Run(c.provider+"/"+c.model, func(t *testing.T) {
			t.Parallel()
			_, base := childSim(t, "--dialect", c.dialect)
			lines := `{"custom_id":"one","url":"/v1/embeddings","body":{"input":"a river"` + c.more + `}}` + "\n"
			if several := len(strings.Fields(c.shapes)) > 1; several {
				lines += `{"custom_id":"two","input":["a river","a lake"],"encoding_format":"float"` + c.more + `}` + "\n"
			}
			in := writeLines(t, lines)
			out := filepath.Join(filepath.Dir(in), "out.jsonl")
			vendorFlags := []string{"--provider", c.provider, "--base-url", onHost(t, base, ""), "--model", c.model, "--price", "1000000,1"}
			env := map[string]string{"A_KEY": "k"}
			run := append([]string{"run", in, "-o", out, "--api-key-env", "A_KEY", "--progress", "plain"}, vendorFlags...)
			code, _, said := inWorld(t, nil, env, run...)
			if code != exit.OK || !strings.Contains(said, "jq -c '[.custom_id, (.response.body | .embedding // .embeddings)]'") {
				t.Fatalf("exit code %d: %s", code, said)
			}
			text := read(t, out)
			for _, shape := range append(strings.Fields(c.shapes), `"translated":true`, `"cost_usd":`, `"input_tokens":2`) {
				if !strings.Contains(text, shape) {
					t.Errorf("no %s in %s", shape, text)
				}
			}
			code, planned, said := inWorld(t, nil, nil, append([]string{"plan", in, "--json", "--rpm", "60"}, vendorFlags...)...)
			var plan struct {
				Items   int
				Assumed int `json:"output_assumed"`
			}
			if err := json.Unmarshal([]byte(planned), &plan); code != exit.OK || err != nil || plan.Items != strings.Count(lines, "\n") || plan.Assumed != 0 {
				t.Errorf("exit code %d: %s%s", code, planned, said)
			}
			bad := writeLines(t, lines+`{"custom_id":"bad","url":"/v1/embeddings","body":{"input":"a",`+c.refused+`}}`+"\n")
			code, _, said = inWorld(t, nil, nil, append([]string{"plan", bad, "--rpm", "60"}, vendorFlags...)...)
			if code != exit.Usage || !strings.Contains(said, fmt.Sprintf("%s:%d: %s ", bad, strings.Count(lines, "\n")+1, c.field)) || !strings.Contains(said, c.why) {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
}

// A prompt is the text of an embedding with --endpoint, a template makes one of a line's fields, and
// --param says for all what they are for. No bound on an answer is spoken of.
func TestPromptsAreEmbedded(t *testing.T) {
	_, base := childSim(t, "--dialect", "cohere")
	for _, c := range []struct {
		line string
		args []string
	}{
		{`{"custom_id":"a","prompt":"a river"}`, nil},
		{`{"custom_id":"a","what":"river"}`, []string{"--template", "a {{.what}}"}},
	} {
		in := writeLines(t, c.line+"\n")
		out := filepath.Join(filepath.Dir(in), "out.jsonl")
		args := append([]string{"run", in, "-o", out, "--provider", "cohere-v2", "--base-url", onHost(t, base, ""), "--api-key-env", "A_KEY", "--model", "m", "--endpoint", "/v1/embeddings", "--param", "input_type=search_query", "--progress", "plain"}, c.args...)
		code, _, said := inWorld(t, nil, map[string]string{"A_KEY": "k"}, args...)
		if text := read(t, out); code != exit.OK || !strings.Contains(text, `"texts":["a river"]`) || strings.Contains(said, "max_tokens") {
			t.Errorf("exit code %d: %s%s", code, said, text)
		}
	}
}

// Vertex has no batch of embeddings: a line of several texts is refused by its field, one of a
// single text is not. Vertex's express mode has no embeddings.
func TestVertexEmbedsOneTextALine(t *testing.T) {
	args := []string{"--project", "p", "--model", "gemini-embedding-2", "--rpm", "60"}
	one, two := writeLines(t, `{"input":["a"],"dimensions":8}`+"\n"), writeLines(t, `{"input":["a","b"],"dimensions":8}`+"\n")
	if code, _, said := inWorld(t, nil, nil, append([]string{"plan", one, "--provider", "vertex"}, args...)...); code != exit.OK {
		t.Errorf("exit code %d: %s", code, said)
	}
	want := two + ":1: input cannot be translated for lane vertex/gemini-embedding-2 (gemini): has more than 1 text"
	if code, _, said := inWorld(t, nil, nil, append([]string{"plan", two, "--provider", "vertex"}, args...)...); code != exit.Usage || !strings.Contains(said, want) {
		t.Errorf("exit code %d: %s", code, said)
	}
	for _, in := range []string{one, two} {
		if code, _, said := inWorld(t, nil, nil, "plan", in, "--provider", "vertex-express", "--model", "m", "--rpm", "60"); code != exit.Usage || !strings.Contains(said, "vertex-express does not have /v1/embeddings") {
			t.Errorf("exit code %d: %s", code, said)
		}
	}
}
