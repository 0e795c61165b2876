package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/catalog"
)

// What is wrong with whom to call is said before a call is made, with what helps.
func TestErrorsNameTheVendorAndHelp(t *testing.T) {
	dir := t.TempDir()
	file := filesIn(t, dir)
	in, none := file("in.jsonl", `{"prompt":"hello"}`+"\n"), file("none.key", "")
	for _, c := range []struct {
		args string
		env  map[string]string
		want string
	}{
		{"--provider antropic", nil, `"antropic" is not known: did you mean anthropic? use one of headrace help providers`},
		{"--provider Google", nil, `"Google" is not known: did you mean gemini?`},
		{"--provider AWS", nil, `did you mean bedrock?`},
		{"--provider AIzaSyABCDEFGHIJKLM", nil, `"[redacted]" is not known`},
		{"--provider Bedrock", nil, "--provider bedrock needs --region (or AWS_REGION, AWS_DEFAULT_REGION)"},
		{"--provider azure", nil, "--provider azure needs --resource (or AZURE_RESOURCE_NAME, AZURE_OPENAI_ENDPOINT)"},
		{"--provider azure-anthropic", map[string]string{"AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com"}, "needs --resource (or ANTHROPIC_FOUNDRY_RESOURCE, AZURE_RESOURCE_NAME)"},
		{"--provider azure", map[string]string{"AZURE_OPENAI_ENDPOINT": "acme"}, `AZURE_OPENAI_ENDPOINT: "acme" is not an address: write it as in https://acme.openai.azure.com`},
		{"--provider azure --resource https://acme.openai.azure.com", nil, "as in acme; set a whole address with --base-url"},
		{"--provider bedrock --region eu_west.1", nil, `--region (or AWS_REGION, AWS_DEFAULT_REGION): "eu_west.1" is invalid: only letters, digits, - and _ are allowed, as in eu-west-1`},
		{"--provider bedrock --base-url http://127.0.0.1:9", map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, "--provider bedrock needs --region (or AWS_REGION, AWS_DEFAULT_REGION) to sign requests"},
		{"--provider GitHub-Models", nil, "--provider github-models answers no longer: GitHub retired GitHub Models on 30 July 2026: use one of headrace help providers"},
		{"--provider github", nil, "--provider github answers no longer: GitHub retired GitHub Models on 30 July 2026"},
		{"--base-url https://models.github.ai/inference", nil, "--base-url: models.github.ai answers no longer: GitHub retired GitHub Models on 30 July 2026"},
		{"--provider databricks", nil, "--provider databricks needs --resource (or DATABRICKS_HOST)"},
		{"--provider databricks", map[string]string{"DATABRICKS_HOST": "dbc-1.cloud.databricks.com"}, "DATABRICKS_HOST: \"dbc-1.cloud.databricks.com\" is not an address: write it as in https://acme.cloud.databricks.com, or set --resource"},
		{"--provider databricks --resource adb-1.2", nil, `--resource: "adb-1.2" is invalid: only letters, digits, - and _ are allowed, as in acme; set a whole address with --base-url`},
		{"--provider databricks", map[string]string{"DATABRICKS_HOST": "https://dbc-1.cloud.databricks.com/#x", "DATABRICKS_TOKEN": "k"}, "DATABRICKS_HOST: it must not have a user, query or fragment"},
		{"--provider anthropic", map[string]string{"ANTHROPIC_BASE_URL": "gateway.test"}, "ANTHROPIC_BASE_URL: \"gateway.test\" is not an address: write it as in https://api.anthropic.com\n"},
		{"--provider sagemaker --region eu-west-1", map[string]string{"OPENAI_API_KEY": "k"}, "--provider sagemaker needs a token, and no variable is known for it"},
		{"--provider local", nil, "--provider local has no address of its own: set it with --base-url"},
		{"--provider generic --base-url localhost:8000", nil, "try http://localhost:8000"},
		{"--provider generic --base-url example.test", nil, "try https://example.test"},
		{"--provider gemini", nil, "none of GOOGLE_API_KEY, GEMINI_API_KEY is set"},
		{"--provider anthropic --api-key-file gone.key", nil, "--api-key-file: gone.key: there is no such file: check its name"},
		{"--provider anthropic --api-key-file " + none, nil, none + ": there is no key in it"},
		{"--provider anthropic --api-key-file sk-ant-0123456789", nil, "--api-key-file takes the name of a file, not a key"},
		{"--provider vertex --project p --location global", map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "gone.json"}, "(gone.json, which GOOGLE_APPLICATION_CREDENTIALS names, is not there): run gcloud auth application-default login"},
	} {
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", c.env["GOOGLE_APPLICATION_CREDENTIALS"]) // Google's own code looks there
		args := append([]string{"run", in, "-o", filepath.Join(dir, "out.jsonl"), "--model", "m"}, strings.Fields(c.args)...)
		code, _, stderr := inWorld(t, nil, c.env, args...)
		if code != exit.Usage || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "0123456789") {
			t.Errorf("%s: exit %d: %s", c.args, code, stderr)
		}
	}
}

// Lines that the provider does not take lead to who does, and to what else would do.
func TestHintsOfOtherDialects(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	for _, c := range []struct {
		line, provider string
		want           []string
	}{
		{`{"custom_id":"a","params":{"model":"m","max_tokens":9,"messages":[]}}`, "gemini", []string{"--provider anthropic or vertex-anthropic or azure-anthropic or bedrock-anthropic takes lines for /v1/messages\n"}},
		{`{"key":"a","request":{"contents":[]}}`, "openai", []string{"--provider gemini or vertex or vertex-express takes lines for :generateContent\n"}},
		{`{"recordId":"a","modelInput":{"messages":[]}}`, "openai", []string{"--provider bedrock takes lines for /converse\n"}},
		{`{"messages":[{"role":"user","content":"hi"}]}`, "anthropic", []string{
			"in.jsonl:1: max_completion_tokens is missing, and a bound is demanded: the line cannot be translated for lane anthropic/m (anthropic): add it, or choose",
			"--max-tokens N sets max_tokens for chats that have none", "--on-untranslatable skip leaves out lines that cannot be translated",
		}},
		{`{"prompt":"hi","seed":1}`, "anthropic", []string{"seed cannot be translated for lane anthropic/m (anthropic): has no counterpart: remove it, or", "--on-untranslatable skip leaves out"}},
	} {
		must.Do(t, os.WriteFile(in, []byte(c.line+"\n"), 0o600))
		code, _, stderr := inWorld(t, nil, nil, "plan", in, "--model", "m", "--provider", c.provider)
		for _, want := range c.want {
			if code != exit.Usage || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit %d: %s", c.line, code, stderr)
			}
		}
	}
}

// A plan needs no address, and knows how many calls a provider has in flight.
func TestPlanNeedsNoPlace(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	must.Do(t, os.WriteFile(in, []byte(`{"prompt":"hello"}`+"\n"), 0o600))
	for provider, want := range map[string]string{"bedrock": "calls in flight (-c)   64", "vertex": "calls in flight (-c)   64", "azure": "calls in flight (-c)   64", "moonshot": "calls in flight (-c)    1"} {
		code, stdout, stderr := inWorld(t, nil, nil, "plan", in, "--model", "m", "--rpm", "60", "--provider", provider)
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit %d: %s%s", provider, code, stdout, stderr)
		}
	}
}

// Rows that have no address say so in the help.
func TestProvidersHelp(t *testing.T) {
	_, stdout, _ := inWorld(t, nil, nil, "help", "providers")
	for _, v := range catalog.Rows() {
		line := stdout[strings.Index(stdout, "\n  "+v.Name+" ")+1:]
		line, _, _ = strings.Cut(line, "\n")
		if strings.Contains(line, "--base-url") != (v.Base == "") {
			t.Errorf("%q", line)
		}
	}
}
