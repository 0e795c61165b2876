package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A body goes without its model where the address names that: to Claude on Vertex with the version
// in that place, to SageMaker with an empty one. The address has the model.
func TestModelsInAddresses(t *testing.T) {
	for _, c := range []struct{ provider, answer, path, body string }{
		{"vertex-anthropic", aMessage, "/x/models/claude-haiku-4-5%4020251001:rawPredict", `{"anthropic_version":"vertex-2023-10-16","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`},
		{"sagemaker", aChat, "/x/claude-haiku-4-5%4020251001/openai/v1/chat/completions", `{"model":"","messages":[{"role":"user","content":"hi"}]}`},
	} {
		var path, body string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			path, body = r.URL.EscapedPath(), string(text)
			says(http.StatusOK, "application/json", c.answer)(w, r)
		}))
		in := writeLines(t, `{"prompt":"hi"}`+"\n")
		code, _, said := inWorld(t, nil, map[string]string{"K": "k"}, "run", in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"),
			"--provider", c.provider, "--base-url", server.URL+"/x", "--api-key-env", "K", "--model", "claude-haiku-4-5@20251001")
		server.Close()
		if code != ExitOK || path != c.path || body != c.body {
			t.Errorf("%s: exit code %d, %s with %s: %s", c.provider, code, path, body, said)
		}
	}
}

// heardFrom runs one prompt against a server on this machine, and gives the headers of its call.
func heardFrom(t *testing.T, answer string, env map[string]string, args ...string) (h http.Header, code int, said string) {
	t.Helper()
	var mu sync.Mutex // for h
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		h = r.Header
		mu.Unlock()
		says(http.StatusOK, "application/json", answer)(w, r)
	}))
	defer server.Close()
	in := writeLines(t, `{"prompt":"hi"}`+"\n")
	for name, value := range env {
		env[name] = strings.ReplaceAll(value, "SERVER", server.URL)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "SERVER", server.URL)
	}
	code, _, said = inWorld(t, nil, env, append([]string{"run", in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"), "--model", "m"}, args...)...)
	return h, code, said
}

const (
	aChat    = `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`
	aMessage = `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
)

// What is in a variable of tokens is sent as Bearer where a key would have a header of its own. A
// key counts before a token.
func TestTokensInVariables(t *testing.T) {
	for _, c := range []struct {
		provider, answer, header, prefix string
		env                              map[string]string
	}{
		{"anthropic", aMessage, "Authorization", "Bearer ", map[string]string{"ANTHROPIC_AUTH_TOKEN": "the-one-0123456789"}},
		{"anthropic", aMessage, "X-Api-Key", "", map[string]string{"ANTHROPIC_API_KEY": "the-one-0123456789", "ANTHROPIC_AUTH_TOKEN": "another"}},
		{"azure", aChat, "Authorization", "Bearer ", map[string]string{"AZURE_OPENAI_AD_TOKEN": "the-one-0123456789"}},
		{"azure", aChat, "Api-Key", "", map[string]string{"AZURE_API_KEY": "the-one-0123456789", "AZURE_OPENAI_AD_TOKEN": "another"}},
		{"azure-deployments", aChat, "Authorization", "Bearer ", map[string]string{"AZURE_OPENAI_AD_TOKEN": "the-one-0123456789"}},
		{"cohere", aChat, "Authorization", "Bearer ", map[string]string{"CO_API_KEY": "the-one-0123456789"}},
		{"cohere", aChat, "Authorization", "Bearer ", map[string]string{"CO_API_KEY": " ", "COHERE_API_KEY": "the-one-0123456789"}},
	} {
		h, code, said := heardFrom(t, c.answer, c.env, "--provider", c.provider, "--base-url", "SERVER/x")
		for _, header := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
			want := ""
			if header == c.header {
				want = c.prefix + "the-one-0123456789"
			}
			if got := h.Get(header); got != want || code != ExitOK {
				t.Errorf("%s with %q: %s: %q, want %q: %s", c.provider, c.env, header, got, want, said)
			}
		}
	}
	h, _, said := heardFrom(t, aMessage, map[string]string{"ANTHROPIC_AUTH_TOKEN": "the-one-0123456789"}, "--provider", "anthropic", "--base-url", "SERVER", "--api-key-env", "ANTHROPIC_AUTH_TOKEN")
	if h.Get("Authorization") != "Bearer the-one-0123456789" {
		t.Errorf("a token whose variable is named: %q: %s", h, said)
	}
}

// The address in OpenAI's own variable counts as --base-url does, which counts before it.
func TestBaseURLOfOpenAI(t *testing.T) {
	h, code, said := heardFrom(t, aChat, map[string]string{"OPENAI_BASE_URL": " SERVER/v1\n", "OPENAI_API_KEY": "the-key-0123456789"})
	if code != ExitOK || h.Get("Authorization") != "Bearer the-key-0123456789" {
		t.Errorf("exit code %d, %q: %s", code, h, said)
	}
	h, code, said = heardFrom(t, aChat, map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "the-key-0123456789"}, "--base-url", "SERVER/v1")
	if code != ExitOK || h == nil {
		t.Errorf("exit code %d: %s", code, said)
	}
	if r := runnerWith(t, map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "-o", "x", "--provider", "groq"); r.flags.baseURL != r.flags.vendor.Base {
		t.Errorf("another provider is called at %s", r.flags.baseURL)
	}
	for base, want := range map[string]string{
		"example.test/v1":               "OPENAI_BASE_URL: it must begin with http:// or https://: try https://example.test/v1",
		"https://models.github.ai/chat": "OPENAI_BASE_URL: models.github.ai answers no longer",
	} {
		if _, code, said := heardFrom(t, aChat, map[string]string{"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "k"}); code != ExitUsage || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d: %s", base, code, said)
		}
	}
}

// OpenAI's key goes to another host than OpenAI's only if its variable is named, also where the
// address is in a variable.
func TestKeyAndBaseURLOfOpenAI(t *testing.T) {
	env := map[string]string{"OPENAI_BASE_URL": "https://gateway.example.test/v1", "OPENAI_API_KEY": testKey}
	for _, c := range []struct {
		args []string
		sent bool
	}{{nil, false}, {[]string{"--api-key-env", "OPENAI_API_KEY"}, true}} {
		r := runnerWith(t, env, append([]string{"-o", "x"}, c.args...)...)
		b := &backend{name: "openai"}
		if err := r.prove(b); err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(texts(b), func(text string) bool { return strings.Contains(text, "is not sent to gateway.example.test") })
		if slices.Contains(b.secrets(), testKey) != c.sent || said == c.sent {
			t.Errorf("%q: keys %q, %q", c.args, b.secrets(), texts(b))
		}
	}
}

// A token for the server in Anthropic's own variable does not go to Anthropic, and to that server
// only if its variable is named.
func TestTokenAndBaseURLOfAnthropic(t *testing.T) {
	env := map[string]string{"ANTHROPIC_BASE_URL": "https://gateway.example.test", "ANTHROPIC_AUTH_TOKEN": testKey}
	for _, c := range []struct {
		args []string
		sent bool
	}{{nil, false}, {[]string{"--api-key-env", "ANTHROPIC_AUTH_TOKEN"}, true}} {
		r := runnerWith(t, env, append([]string{"-o", "x", "--provider", "anthropic"}, c.args...)...)
		b := &backend{name: "anthropic"}
		err := r.prove(b)
		if hostOf(r.flags.baseURL) != "gateway.example.test" || err != nil || slices.Contains(b.secrets(), testKey) != c.sent {
			t.Errorf("%q: keys %q to %s, %q: %v", c.args, b.secrets(), r.flags.baseURL, texts(b), err)
		}
	}
}

// The organisation and the project of OpenAI's variables are sent to OpenAI alone.
func TestOrganisationStaysAtOpenAI(t *testing.T) {
	env := map[string]string{"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj_1", "GOOGLE_CLOUD_QUOTA_PROJECT": "counted"}
	for _, c := range []struct {
		args         string
		organisation string
		counted      string
	}{
		{"", "org-1", ""},
		{"--base-url https://eu.api.openai.com/v1", "org-1", ""},
		{"--base-url http://127.0.0.1:1/v1", "", ""},
		{"--base-url https://gateway.example.test/v1", "", ""},
		{"--provider groq", "", ""},
		{"--provider azure --resource r", "", ""},
		{"--provider vertex --project p --location l", "", "counted"},
		{"--provider vertex --base-url https://gateway.example.test/v1", "", ""},
	} {
		r := runnerWith(t, env, append([]string{"-o", "x"}, strings.Fields(c.args)...)...)
		h, err := r.headers(&backend{})
		if err != nil || h.Get("OpenAI-Organization") != c.organisation || (h.Get("OpenAI-Project") != "") != (c.organisation != "") || h.Get("X-Goog-User-Project") != c.counted {
			t.Errorf("%s: %q, %v", c.args, h, err)
		}
	}
	r := runnerWith(t, map[string]string{"OPENAI_ORG_ID": "org\n1"}, "-o", "x")
	if _, err := r.headers(&backend{}); err == nil || !strings.Contains(err.Error(), "OPENAI_ORG_ID has a character that headers cannot have") {
		t.Errorf("%v", err)
	}
	r = runnerWith(t, nil, "-o", "x", "--provider", "anthropic")
	if h, err := r.headers(&backend{}); err != nil || h.Get("Anthropic-Version") == "" {
		t.Errorf("the dialect's own header is missing: %q, %v", h, err)
	}
}

// A part of the place may be in a variable of the vendor's own, which counts before the usual one.
func TestPlacesOfVendors(t *testing.T) {
	for _, c := range []struct{ provider, variable, want string }{
		{"azure-anthropic", "ANTHROPIC_FOUNDRY_RESOURCE", "https://mine.services.ai.azure.com/anthropic"},
		{"azure-anthropic", "AZURE_RESOURCE_NAME", "https://mine.services.ai.azure.com/anthropic"},
		{"databricks", "DATABRICKS_HOST", "https://adb-1.2.azuredatabricks.net/serving-endpoints"},
		{"vertex-anthropic", "ANTHROPIC_VERTEX_PROJECT_ID", "https://us-east5-aiplatform.googleapis.com/v1/projects/mine/locations/us-east5/publishers/anthropic"},
		{"azure", "ANTHROPIC_FOUNDRY_RESOURCE", "https://other.openai.azure.com/openai/v1"},
		{"anthropic", "ANTHROPIC_BASE_URL", "https://gateway.example.test/team-a"},
		{"azure-anthropic", "ANTHROPIC_BASE_URL", "https://other.services.ai.azure.com/anthropic"},
	} {
		env := map[string]string{"AZURE_RESOURCE_NAME": "other", "GOOGLE_CLOUD_PROJECT": "other", "CLOUD_ML_REGION": "us-east5"}
		switch env[c.variable] = "mine"; c.variable {
		case "DATABRICKS_HOST":
			env[c.variable] = "https://adb-1.2.azuredatabricks.net/serving-endpoints/"
		case "ANTHROPIC_BASE_URL":
			env[c.variable] = "https://gateway.example.test/team-a/"
		}
		if r := runnerWith(t, env, "-o", "x", "--provider", c.provider); r.flags.baseURL != c.want {
			t.Errorf("%s with %s: %s", c.provider, c.variable, r.flags.baseURL)
		}
	}
}
