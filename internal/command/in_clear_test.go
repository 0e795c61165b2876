package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
)

// What proves who calls goes unencrypted to the vendor's own hosts only if that was allowed: not
// from its usual variable, whatever says where, and not the headers of an account either.
func TestNothingOfTheirsInClear(t *testing.T) {
	credentials := filepath.Join(t.TempDir(), "credentials.json")
	must.Do(t, os.WriteFile(credentials, []byte(`{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r"}`), 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", credentials)
	for _, c := range []struct {
		args string
		env  map[string]string
		says string
	}{
		{"--base-url http://api.openai.com/v1", nil, "so what proves"}, // with a key or not
		{
			"--base-url http://api.openai.com/v1",
			map[string]string{"OPENAI_API_KEY": testKey},
			"--base-url: it says http, so what proves who calls would be sent unencrypted to api.openai.com: try https://api.openai.com/v1, or add --insecure-http",
		},
		{"--base-url HTTP://API.OpenAI.com.:80/v1", map[string]string{"OPENAI_API_KEY": testKey}, "try https://API.OpenAI.com./v1"},
		{"--base-url http://api.openai.com:8080/v1", map[string]string{"OPENAI_API_KEY": testKey}, "try https://api.openai.com:8080/v1, or"},
		{"", map[string]string{"OPENAI_API_KEY": testKey, "OPENAI_BASE_URL": "http://api.openai.com/v1"}, "OPENAI_BASE_URL: it says http, so what proves who calls would"},
		{"--provider azure", map[string]string{"AZURE_API_KEY": testKey, "AZURE_OPENAI_ENDPOINT": "http://acme.openai.azure.com"}, "AZURE_OPENAI_ENDPOINT: it says http, so what proves who calls would"},
		{"--provider vertex --base-url http://aiplatform.googleapis.com/v1", map[string]string{}, "so what proves who calls would be sent unencrypted"},
		{"--provider bedrock --region eu-west-1 --base-url http://bedrock-runtime.eu-west-1.amazonaws.com", map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": testKey}, "so what proves who calls would be sent unencrypted"},
		{"--base-url http://api.openai.com/v1 --api-key-env MINE", map[string]string{"MINE": testKey, "OPENAI_ORG_ID": "org-1"}, "so what is in OPENAI_ORG_ID would be sent unencrypted"},
	} {
		in := writeLines(t, `{"prompt":"hi"}`+"\n")
		out := filepath.Join(filepath.Dir(in), "out.jsonl")
		code, _, said := inWorld(t, nil, c.env, append([]string{"run", in, "-o", out, "--model", "m"}, strings.Fields(c.args)...)...)
		if code != exit.Usage || !strings.Contains(said, c.says) || strings.Contains(said, testKey) {
			t.Errorf("%s: exit code %d: %s", c.args, code, said)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: there is an output", c.args)
		}
	}
}

// A plan calls nobody: it may be made of such an address.
func TestPlanSendsNothing(t *testing.T) {
	in := writeLines(t, `{"prompt":"hi"}`+"\n")
	if code, _, said := inWorld(t, nil, nil, "plan", in, "--model", "m", "--rpm", "60", "--base-url", "http://api.openai.com/v1"); code != exit.OK {
		t.Errorf("exit code %d: %s", code, said)
	}
}
