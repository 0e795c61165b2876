package command

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
)

// The key in a vendor's usual variable goes to the vendor's own address, and nothing needs
// to be said of it. Without one the variables are named, but for servers of one's own.
func TestEveryVendorIsCalledWithItsKey(t *testing.T) {
	place := []string{"--region", "eu-west-1", "--project", "p", "--location", "global", "--resource", "acme"}
	for _, v := range catalog.Rows() {
		if v.Base == "" || len(v.Keys) == 0 {
			continue
		}
		for _, key := range append([]string{""}, v.Keys...) {
			env := map[string]string{key: testKey}
			r := runnerWith(t, env, append([]string{"-o", "x", "--provider", v.Name}, place...)...)
			b := &backend{name: v.Name}
			err := r.prove(b)
			switch {
			case key != "" && (err != nil || len(b.notice) > 0 || !slices.Contains(b.secrets(), testKey)):
				t.Errorf("%s with %s: %v, %q, keys %q", v.Name, key, err, b.notice, b.secrets())
			case key == "" && (err == nil) != v.Local:
				t.Errorf("%s without a key: %v", v.Name, err)
			case key == "" && err != nil && !strings.Contains(err.Error(), strings.Join(v.Keys, ", ")) && v.Auth != catalog.AWS:
				t.Errorf("%s: %v", v.Name, err)
			}
		}
	}
}

// runnerWith is one that has read its flags.
func runnerWith(t *testing.T, env map[string]string, args ...string) *runner {
	t.Helper()
	f, flags := &runFlags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	w := &World{name: "headrace", args: args, env: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
	if err := f.complete(flags, w.env); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return &runner{World: w, flags: f}
}

// What is wrong with whom to call is said before a call is made, with what helps.
func TestWhomIsToldInWordsThatHelp(t *testing.T) {
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
		if code != ExitUsage || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "0123456789") {
			t.Errorf("%s: exit %d: %s", c.args, code, stderr)
		}
	}
}

// Azure's variable may have the address with or without what stands behind the host.
func TestAzureEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://acme.openai.azure.com":                                               "https://acme.openai.azure.com/openai/v1",
		"https://acme.openai.azure.com/ ":                                             "https://acme.openai.azure.com/openai/v1",
		"https://acme.openai.azure.com/openai/v1/":                                    "https://acme.openai.azure.com/openai/v1",
		"https://acme.openai.azure.com/openai":                                        "https://acme.openai.azure.com/openai/v1",
		"https://acme.openai.azure.com/openai/deployments/d/chat/completions?api-v=1": "https://acme.openai.azure.com/openai/v1",
		"https://gateway.test/team-a/":                                                "https://gateway.test/team-a/openai/v1",
	} {
		r := runnerWith(t, map[string]string{"AZURE_OPENAI_ENDPOINT": endpoint}, "-o", "x", "--provider", "azure")
		if r.flags.baseURL != want || r.flags.madeOf != "AZURE_OPENAI_ENDPOINT" {
			t.Errorf("%q: %s, of %s", endpoint, r.flags.baseURL, r.flags.madeOf)
		}
	}
}

// Flags that change nothing are said to, and what an address is made of is what to check.
func TestUnusedPlaces(t *testing.T) {
	for args, want := range map[string]string{
		"--provider groq --region r":                                          "--region: ignored with --provider groq",
		"--provider azure --base-url http://127.0.0.1:9 --resource r":         "--resource: ignored with --base-url",
		"--provider azure --resource r":                                       "",
		"--provider bedrock --base-url http://127.0.0.1:9 --region r":         "",
		"--provider vertex --project p --location l --region r --resource r":  "--region and --resource: ignored with --provider vertex",
		"--provider bedrock-openai --base-url http://127.0.0.1:9 --region r":  "--region: ignored with --base-url",
		"--provider groq --max-tokens 7":                                      "--max-tokens: ignored with --provider groq: give lines their own max_tokens",
		"--provider gemini --max-tokens 7":                                    "",
		"--provider sim --region r":                                           "--region: ignored with --provider sim",
		"--provider openai --project p":                                       "--project: ignored with --provider openai",
		"--provider openai --base-url http://127.0.0.1:9 --location europe-w": "--location: ignored with --provider openai",
	} {
		r := runnerWith(t, nil, append([]string{"-o", "x"}, strings.Fields(args)...)...)
		b := &backend{name: r.flags.provider}
		r.sayUnused(b)
		if got := strings.Join(texts(b), "|"); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
	const advice = "check --base-url, whose path often ends in /v1, and the network"
	for args, want := range map[string]string{
		"--provider azure":                                     "check AZURE_OPENAI_ENDPOINT, and the network",
		"--provider bedrock --region r":                        "check --region, and the network",
		"--provider vertex --project p --location l":           "check --project and --location, and the network",
		"--provider anthropic --base-url http://127.0.0.1:9":   "check --base-url (anthropic itself is at https://api.anthropic.com), and the network",
		"--provider openai --base-url http://127.0.0.1:9":      advice,
		"--provider vllm --base-url http://127.0.0.1:9":        advice,
		"--provider generic --base-url http://example.test/v1": advice,
	} {
		env := map[string]string{}
		if args == "--provider azure" {
			env["AZURE_OPENAI_ENDPOINT"] = "https://gateway.test"
		}
		r := runnerWith(t, env, append([]string{"-o", "x"}, strings.Fields(args)...)...)
		if got := r.flags.whereFrom(advice); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
}

func texts(b *backend) (list []string) {
	for _, n := range b.notice {
		list = append(list, n.text)
	}
	return list
}

// The advice after a call without a key says where to put the key, or that the key was not
// sent.
func TestKeyAdvice(t *testing.T) {
	for _, c := range []struct {
		args string
		env  map[string]string
		want string
	}{
		{"--provider anthropic --base-url http://127.0.0.1:9", nil, "no key was sent: put that server's key into ANTHROPIC_API_KEY, or name its variable with --api-key-env NAME"},
		{"--provider anthropic --base-url http://example.test", map[string]string{"ANTHROPIC_API_KEY": testKey}, "no key was sent: if the key in ANTHROPIC_API_KEY is for that server, add --api-key-env ANTHROPIC_API_KEY"},
		{"--provider anthropic --base-url http://127.0.0.1:9", map[string]string{"ANTHROPIC_API_KEY": testKey}, "put a valid key into ANTHROPIC_API_KEY, or ask for access to the model"},
		{"--provider ollama", nil, "name the variable with that server's key: --api-key-env NAME"},
		{"--base-url http://127.0.0.1:9", nil, "name the variable with that server's key: --api-key-env NAME"},
	} {
		r := runnerWith(t, c.env, append([]string{"-o", "x"}, strings.Fields(c.args)...)...)
		r.backend = &backend{name: r.flags.provider}
		if err := r.prove(r.backend); err != nil {
			t.Fatal(err)
		}
		if got := r.keyAdvice(); got != c.want {
			t.Errorf("%s: %q", c.args, got)
		}
	}
	for _, c := range []struct {
		args, want string
		kind       provider.Kind
	}{
		{"--provider azure --resource acme", "put a valid key into MINE, check --resource, or ask for access to the model", provider.Unauthorized},
		{"--provider azure --resource acme", "check the model's name (--model) and --resource", provider.ModelNotFound},
		{"--provider anthropic", "check the model's name (--model)", provider.ModelNotFound},
		{"--provider anthropic --base-url http://127.0.0.1:9", "check --base-url (anthropic itself is at https://api.anthropic.com), and the model's name (--model)", provider.ModelNotFound},
		{"--base-url http://127.0.0.1:9", "check --base-url, whose path often ends in /v1, and the model's name (--model)", provider.ModelNotFound},
	} {
		r := runnerWith(t, map[string]string{"MINE": testKey}, append([]string{"-o", "x", "--api-key-env", "MINE"}, strings.Fields(c.args)...)...)
		r.backend = &backend{name: r.flags.provider}
		if err := r.prove(r.backend); err != nil {
			t.Fatal(err)
		}
		if got := r.adviceFor(&provider.Error{Kind: c.kind}); got != c.want {
			t.Errorf("%s: %q", c.args, got)
		}
	}
	r := runnerWith(t, map[string]string{"OPENAI_API_KEY": testKey}, "-o", "x", "--provider", "vllm", "--base-url", "http://gpu.lan:8000/v1")
	b := &backend{}
	if err := r.prove(b); err != nil || !strings.Contains(strings.Join(texts(b), ""), "the key in OPENAI_API_KEY is for OpenAI and is not sent to gpu.lan") {
		t.Errorf("%v, %q", err, texts(b))
	}
	if got := reasonOf(&provider.Error{Provider: "azure", Kind: provider.Unauthorized, Status: 401, Code: "401"}); got != "azure refuses the key: 401" {
		t.Error(got)
	}
}

// A key that goes out unencrypted is said to, and whether a flag or a variable says http.
func TestUnencryptedKeys(t *testing.T) {
	for _, c := range []struct{ provider, variable, key, want string }{
		{"azure", "HEADRACE_BASE_URL", "AZURE_API_KEY", "openai.azure.com is not this machine, and --base-url says http"},
		{"azure", "AZURE_OPENAI_ENDPOINT", "AZURE_API_KEY", "openai.azure.com is not this machine, and AZURE_OPENAI_ENDPOINT says http"},
		{"openai", "OPENAI_BASE_URL", "OPENAI_API_KEY", "openai.azure.com is not this machine, and OPENAI_BASE_URL says http"},
	} {
		r := runnerWith(t, map[string]string{c.variable: "http://acme.openai.azure.com", c.key: testKey}, "-o", "x", "--provider", c.provider, "--api-key-env", c.key)
		b := &backend{}
		if err := r.prove(b); err != nil || !strings.HasSuffix(strings.Join(texts(b), "|"), c.want) {
			t.Errorf("%s: %v, %q", c.variable, err, texts(b))
		}
	}
}

// A file and a variable of a key cannot both be meant.
func TestKeyFileBeatsVariable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(testKey), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runnerWith(t, nil, "-o", "x", "--provider", "groq", "--api-key-file", path, "--api-key-env", "MINE")
	b := &backend{}
	if err := r.prove(b); err != nil || !slices.Equal(texts(b), []string{"--api-key-env is ignored: --api-key-file has the key"}) {
		t.Errorf("%v, %q", err, texts(b))
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
		if err := os.WriteFile(in, []byte(c.line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := inWorld(t, nil, nil, "plan", in, "--model", "m", "--provider", c.provider)
		for _, want := range c.want {
			if code != ExitUsage || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit %d: %s", c.line, code, stderr)
			}
		}
	}
}

// A plan needs no address, and knows how many calls a provider has in flight.
func TestPlanNeedsNoPlace(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(in, []byte(`{"prompt":"hello"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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

// A token of Entra's goes to Azure as a bearer's, from a file and from a variable; a key as
// Azure takes one, and a web token to others as any key.
func TestEntraTokens(t *testing.T) {
	const token = "eyJ0eXAi0123456789.eyJhdWQi0123456789.c2lnbmVk"
	for _, c := range []struct{ provider, key, header, want string }{
		{"azure", token, "Authorization", "Bearer " + token},
		{"azure-anthropic", token, "Authorization", "Bearer " + token},
		{"azure", testKey, "Api-Key", testKey},
		{"anthropic", token, "X-Api-Key", token},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(c.key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{"--api-key-file=" + path, "--api-key-env=MINE"} {
			r := runnerWith(t, map[string]string{"MINE": c.key}, "-o", "x", "--provider", c.provider, "--resource", "acme", from)
			b := &backend{}
			if err := r.prove(b); err != nil {
				t.Fatal(err)
			}
			sent := &http.Request{Header: http.Header{}}
			if err := b.proof.Apply(t.Context(), sent, nil); err != nil || sent.Header.Get(c.header) != c.want || len(sent.Header) != 1 {
				t.Errorf("%s, %s: %v, %v", c.provider, from, sent.Header, err)
			}
		}
	}
}
