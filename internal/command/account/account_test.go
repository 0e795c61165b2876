package account

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/catalog"
)

// runnerWith is one that has read its flags, and not proved anything.
func runnerWith(t *testing.T, env map[string]string, args ...string) *Account {
	t.Helper()
	f, flags := &settings.Flags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(flags)
	must.Do(t, flags.Parse(args))
	w := &world.World{Name: "headrace", Args: args, Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
	if err := f.Complete(flags, w.Env); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return &Account{World: w, flags: f, ctx: t.Context(), Name: f.Name()}
}

// connectWith is one that has its client.
func connectWith(t *testing.T, env map[string]string, args ...string) (*Account, error) {
	t.Helper()
	b := runnerWith(t, env, args...)
	return Connect(t.Context(), b.World, b.flags)
}

func texts(b *Account) (list []string) {
	for _, n := range b.Notice {
		list = append(list, n.Text)
	}
	return list
}

// backendWith is one that has a key.
func backendWith(t *testing.T, key string) *Account {
	t.Helper()
	proof := must.Get(auth.Bearer(key))(t)
	return &Account{flags: &settings.Flags{}, Name: settings.ProviderOpenAI, proof: proof, Proven: settings.DefaultKeyEnv}
}

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
			b := runnerWith(t, env, append([]string{"-o", "x", "--provider", v.Name}, place...)...)
			err := b.findProof()
			switch {
			case key != "" && (err != nil || len(b.Notice) > 0 || !slices.Contains(b.Secrets(), testKey)):
				t.Errorf("%s with %s: %v, %q, keys %q", v.Name, key, err, b.Notice, b.Secrets())
			case key == "" && (err == nil) != v.Local:
				t.Errorf("%s without a key: %v", v.Name, err)
			case key == "" && err != nil && !strings.Contains(err.Error(), strings.Join(v.Keys, ", ")) && v.Auth != catalog.AWS:
				t.Errorf("%s: %v", v.Name, err)
			}
		}
	}
}

// Metrics name the host of each call: that of --base-url, or the vendor's own.
func TestCalledNamesTheHost(t *testing.T) {
	for args, want := range map[string]string{
		"-o x --base-url https://example.com:8443/v1": "example.com",
		"-o x --provider mistral":                     "api.mistral.ai",
	} {
		b := runnerWith(t, nil, strings.Fields(args)...)
		for range 2 {
			if _, host, model := b.Called("", "m"); host != want || model != "m" {
				t.Errorf("%s: host %q, model %q, want %q", args, host, model, want)
			}
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
		"--provider groq --max-tokens 7":                                      "--max-tokens: ignored with --provider groq: give lines their own max_tokens, or all of them one by --param max_tokens=N",
		"--provider gemini --max-tokens 7":                                    "--max-tokens: ignored with --provider gemini: give lines their own max_tokens, or all of them one by --param max_tokens=N",
		"--provider anthropic --max-tokens 7":                                 "",
		"--provider sim --region r":                                           "--region: ignored with --provider sim",
		"--provider openai --project p":                                       "--project: ignored with --provider openai",
		"--provider openai --base-url http://127.0.0.1:9 --location europe-w": "--location: ignored with --provider openai",
	} {
		b := runnerWith(t, nil, append([]string{"-o", "x"}, strings.Fields(args)...)...)
		b.noteUnused()
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
		if got := r.flags.WhereFrom(advice); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
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
		must.Do(t, r.findProof())
		if got := r.KeyAdvice(); got != c.want {
			t.Errorf("%s: %q", c.args, got)
		}
	}
	b := runnerWith(t, map[string]string{"OPENAI_API_KEY": testKey}, "-o", "x", "--provider", "vllm", "--base-url", "http://gpu.lan:8000/v1")
	if err := b.findProof(); err != nil || !strings.Contains(strings.Join(texts(b), ""), "the key in OPENAI_API_KEY is for OpenAI and is not sent to gpu.lan") {
		t.Errorf("%v, %q", err, texts(b))
	}
}

// A key that goes out unencrypted is said to, and whether a flag or a variable says http.
func TestUnencryptedKeys(t *testing.T) {
	for _, c := range []struct{ provider, variable, key, want string }{
		{"azure", "HEADRACE_BASE_URL", "AZURE_API_KEY", "openai.azure.com is not this machine, and --base-url says http"},
		{"azure", "AZURE_OPENAI_ENDPOINT", "AZURE_API_KEY", "openai.azure.com is not this machine, and AZURE_OPENAI_ENDPOINT says http"},
		{"openai", "OPENAI_BASE_URL", "OPENAI_API_KEY", "openai.azure.com is not this machine, and OPENAI_BASE_URL says http"},
	} {
		b := runnerWith(t, map[string]string{c.variable: "http://acme.openai.azure.com", c.key: testKey}, "-o", "x", "--provider", c.provider, "--api-key-env", c.key)
		if err := b.findProof(); err != nil || !strings.HasSuffix(strings.Join(texts(b), "|"), c.want) {
			t.Errorf("%s: %v, %q", c.variable, err, texts(b))
		}
	}
}

// A file and a variable of a key cannot both be meant.
func TestKeyFileBeatsVariable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	must.Do(t, os.WriteFile(path, []byte(testKey), 0o600))
	b := runnerWith(t, nil, "-o", "x", "--provider", "groq", "--api-key-file", path, "--api-key-env", "MINE")
	if err := b.findProof(); err != nil || !slices.Equal(texts(b), []string{"--api-key-env is ignored: --api-key-file has the key"}) {
		t.Errorf("%v, %q", err, texts(b))
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
		must.Do(t, os.WriteFile(path, []byte(c.key+"\n"), 0o600))
		for _, from := range []string{"--api-key-file=" + path, "--api-key-env=MINE"} {
			b := runnerWith(t, map[string]string{"MINE": c.key}, "-o", "x", "--provider", c.provider, "--resource", "acme", from)
			must.Do(t, b.findProof())
			sent := &http.Request{Header: http.Header{}}
			if err := b.proof.Apply(t.Context(), sent, nil); err != nil || sent.Header.Get(c.header) != c.want || len(sent.Header) != 1 {
				t.Errorf("%s, %s: %v, %v", c.provider, from, sent.Header, err)
			}
		}
	}
}

// OpenAI's key goes to OpenAI and to servers on this machine; to any other host only if
// its variable was named for it, and else a notice says that it stays here.
func TestKeyGoesToItsOwnHost(t *testing.T) {
	for _, c := range []struct {
		base  string
		named bool
		sent  bool
	}{
		{"", false, true},
		{"https://api.openai.com/v1", false, true},
		{"https://EU.api.openai.com/v1", false, true},
		{"http://127.0.0.1:8080/v1", false, true},
		{"http://[::1]:8080/v1", false, true},
		{"http://localhost:8080", false, true},
		{"https://api.groq.com/openai/v1", false, false},
		{"https://api.groq.com/openai/v1", true, true},
		{"https://api.openai.com.example.test/v1", false, false},
		{"https://notapi.openai.com/v1", false, false},
		{"https://127.0.0.1.example.test/v1", false, false},
	} {
		b := &Account{
			World: &world.World{Env: func(string) (string, bool) { return testKey, true }},
			flags: &settings.Flags{InputFlags: settings.InputFlags{VendorFlags: settings.VendorFlags{Provider: settings.ProviderOpenAI, BaseURL: c.base}}, KeyEnv: settings.DefaultKeyEnv, KeyEnvGiven: c.named},
		}
		b.flags.Vendor, _ = catalog.Named(settings.ProviderOpenAI)
		must.Do(t, b.findProof())
		said := slices.ContainsFunc(b.Notice, func(n notice) bool { return strings.Contains(n.Text, "is not sent to") })
		if slices.Contains(b.Secrets(), testKey) != c.sent || said == c.sent {
			t.Errorf("%+v: the keys are %q, said: %q", c, b.Secrets(), b.Notice)
		}
	}
}

// Vertex has no variable for a key: OpenAI's is not sent there. Tokens of Google's go to Google
// and to servers on this machine, and to nobody else.
func TestGoogleTokensGoToGoogle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.json")
	const user = `{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r"}`
	must.Do(t, os.WriteFile(file, []byte(user), 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for base, tokens := range map[string]bool{
		"https://europe-west4-aiplatform.googleapis.com/v1/projects/p": true,
		"http://127.0.0.1:8080": true,
		"https://europe-west4-aiplatform.googleapis.com.example.test": false,
		"https://gateway.example.test/v1":                             false,
	} {
		b := &Account{
			World: &world.World{Env: func(string) (string, bool) { return testKey, true }}, ctx: t.Context(),
			flags: &settings.Flags{InputFlags: settings.InputFlags{VendorFlags: settings.VendorFlags{Provider: "vertex", BaseURL: base}}, KeyEnv: settings.DefaultKeyEnv},
		}
		b.flags.Vendor, _ = catalog.Named("vertex")
		must.Do(t, b.findProof())
		_, are := b.proof.(*auth.Tokens)
		said := slices.ContainsFunc(b.Notice, func(n notice) bool { return strings.Contains(n.Text, "is not sent to") })
		if are != tokens || said == tokens || b.proof != nil && !are || slices.Contains(b.Secrets(), testKey) {
			t.Errorf("%s: %v, %q", base, b.proof, b.Notice)
		}
	}
}

// The advice for a refused key names the variable that has it.
func TestAdviceNamesTheHeadersSecret(t *testing.T) {
	for args, want := range map[string]string{
		"--api-key-env none --header X-Gateway-Key=env:K":                    "put a valid key into K, or ask for access to the model",
		"--api-key-env none":                                                 "no key was sent, as --api-key-env is none: name the variable with the key there, or add --header NAME=env:VARIABLE",
		"--header X-Gateway-Key=env:K":                                       "put a valid key into OPENAI_API_KEY, check K, or ask for access to the model",
		"--header X-Gateway-Key=env:K --base-url https://gateway.example/v1": "no key was sent: if the key in OPENAI_API_KEY is for that server, add --api-key-env OPENAI_API_KEY, or check K",
	} {
		r := runnerWith(t, map[string]string{"K": "pk-0123456789abcdef", "OPENAI_API_KEY": testKey}, append([]string{"-o", "x"}, strings.Fields(args)...)...)
		b := must.Get(Connect(t.Context(), r.World, r.flags))(t)
		if got := b.KeyAdvice(); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
}

// The simulated provider gets no header, and a run says so.
func TestHeadersOfASimulation(t *testing.T) {
	r := runnerWith(t, nil, "-o", "x", "--provider", "sim", "--header", "X-A=1", "--ca-file", "a.pem")
	r.Clock = clockwork.NewRealClock()
	b, err := Connect(t.Context(), r.World, r.flags)
	if err != nil || !slices.Contains(texts(b), "--header and --ca-file: ignored with --provider sim") {
		t.Errorf("%v, %q", err, texts(b))
	}
}

// The file of --config and the environment allow it, too.
func TestInClearByFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.yaml")
	must.Do(t, os.WriteFile(file, []byte("base-url: http://api.openai.com/v1\ninsecure-http: true\n"), 0o600))
	r := runnerWith(t, map[string]string{"OPENAI_API_KEY": testKey}, "-o", "x", "--config", file)
	if b, err := Connect(t.Context(), r.World, r.flags); err != nil || !slices.ContainsFunc(texts(b), isInClear) {
		t.Error(err)
	}
}

// A key that was named, a server of one's own and this machine are as they were: over http
// nothing is refused.
func TestWhatMayBeInClear(t *testing.T) {
	for args, noted := range map[string]bool{
		"--base-url http://api.openai.com/v1 --api-key-env OPENAI_API_KEY": true,
		"--base-url http://gpu.lan:8000/v1 --api-key-env OPENAI_API_KEY":   true,
		"--base-url http://gpu.lan:8000/v1":                                false, // no key goes there
		"--base-url http://127.0.0.1:8000/v1":                              false,
		"--base-url http://localhost:8000/v1":                              false,
		"--base-url https://api.openai.com/v1":                             false,
		"":                                                                 false,
	} {
		r := runnerWith(t, map[string]string{"OPENAI_API_KEY": testKey}, append([]string{"-o", "x"}, strings.Fields(args)...)...)
		b, err := Connect(t.Context(), r.World, r.flags)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		} else if slices.ContainsFunc(texts(b), isInClear) != noted {
			t.Errorf("%s: %q", args, texts(b))
		}
	}
}

func isInClear(text string) bool { return strings.Contains(text, "the key is sent unencrypted") }

// OpenAI's key goes to another host than OpenAI's only if its variable is named, also where the
// address is in a variable.
func TestKeyAndBaseURLOfOpenAI(t *testing.T) {
	env := map[string]string{"OPENAI_BASE_URL": "https://gateway.example.test/v1", "OPENAI_API_KEY": testKey}
	for _, c := range []struct {
		args []string
		sent bool
	}{{nil, false}, {[]string{"--api-key-env", "OPENAI_API_KEY"}, true}} {
		b := runnerWith(t, env, append([]string{"-o", "x"}, c.args...)...)
		must.Do(t, b.findProof())
		said := slices.ContainsFunc(texts(b), func(text string) bool { return strings.Contains(text, "is not sent to gateway.example.test") })
		if slices.Contains(b.Secrets(), testKey) != c.sent || said == c.sent {
			t.Errorf("%q: keys %q, %q", c.args, b.Secrets(), texts(b))
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
		b := runnerWith(t, env, append([]string{"-o", "x", "--provider", "anthropic"}, c.args...)...)
		err := b.findProof()
		if settings.HostOf(b.flags.BaseURL) != "gateway.example.test" || err != nil || slices.Contains(b.Secrets(), testKey) != c.sent {
			t.Errorf("%q: keys %q to %s, %q: %v", c.args, b.Secrets(), b.flags.BaseURL, texts(b), err)
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
		h, err := r.headers()
		if err != nil || h.Get("OpenAI-Organization") != c.organisation || (h.Get("OpenAI-Project") != "") != (c.organisation != "") || h.Get("X-Goog-User-Project") != c.counted {
			t.Errorf("%s: %q, %v", c.args, h, err)
		}
	}
	r := runnerWith(t, map[string]string{"OPENAI_ORG_ID": "org\n1"}, "-o", "x")
	if _, err := r.headers(); err == nil || !strings.Contains(err.Error(), "OPENAI_ORG_ID has a character that headers cannot have") {
		t.Errorf("%v", err)
	}
	r = runnerWith(t, nil, "-o", "x", "--provider", "anthropic")
	if h, err := r.headers(); err != nil || h.Get("Anthropic-Version") == "" {
		t.Errorf("the dialect's own header is missing: %q, %v", h, err)
	}
}

// Where the limits are of an account all models have one lane, else each has its own.
func TestLanesOfAVendor(t *testing.T) {
	for name, want := range map[string]string{"mistral": "mistral/all-models", "groq": "groq/m"} {
		r := &Account{
			World: &world.World{Env: func(string) (string, bool) { return testKey, true }},
			flags: &settings.Flags{InputFlags: settings.InputFlags{VendorFlags: settings.VendorFlags{Provider: name, MaxTokens: 1}}, KeyEnv: "K", KeyEnvGiven: true},
		}
		must.Do(t, r.flags.Resolve(pflag.NewFlagSet("run", pflag.ContinueOnError), r.Env))
		b, err := Connect(t.Context(), r.World, r.flags)
		if err != nil || b.Lane("m") != want {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

// A key over plain http to another machine is warned of; to this one it is not.
func TestUnencryptedKey(t *testing.T) {
	for base, want := range map[string]int{"http://example.test/v1": 1, "https://example.test/v1": 0, "http://127.0.0.1:1/v1": 0, "http://localhost/v1": 0} {
		r := &Account{World: &world.World{Env: func(string) (string, bool) { return testKey, true }}, flags: &settings.Flags{InputFlags: settings.InputFlags{VendorFlags: settings.VendorFlags{Provider: settings.ProviderOpenAI, MaxTokens: 1, BaseURL: base}}, KeyEnv: settings.DefaultKeyEnv, KeyEnvGiven: true, Concurrency: 1}}
		must.Do(t, r.flags.Resolve(pflag.NewFlagSet("", pflag.ContinueOnError), func(string) (string, bool) { return "", false }))
		b, err := Connect(t.Context(), r.World, r.flags)
		if err != nil || len(b.Notice) != want {
			t.Errorf("%s: %+v, %v", base, b, err)
		}
	}
}

// An address of a proxy that net/http would leave out without a word ends the command with 2, and
// is not repeated: it may have a password in it.
func TestProxyAddressesThatAreRefused(t *testing.T) {
	for value, fine := range map[string]bool{
		"http://alice:pa%ss-42@proxy:3128": false, "ftp://proxy-42:21": false, "http://": false, "proxy 42:80": false, "://proxy-42": false,
		"http://alice:p%25-42@proxy:3128": true, "proxy:3128": true, "proxy": true, "https://proxy": true, "socks5://127.0.0.1:1080": true, "socks5h://proxy": true, "http://[::1]:80": true, "127.0.0.1:80": true,
	} {
		for base, variable := range map[string]string{"https://api.openai.com/v1": "HTTPS_PROXY", "http://gpu.lan/v1": "http_proxy"} {
			f := &settings.Flags{}
			f.BaseURL = base
			err := (&Account{World: &world.World{Env: func(name string) (string, bool) { return map[string]string{variable: value}[name], true }}, flags: f}).checkProxy()
			if (err == nil) != fine || err != nil && (!strings.Contains(err.Error(), variable+" is not the address of a proxy: want http://[USER:PASSWORD@]HOST:PORT") || strings.Contains(err.Error(), "42")) {
				t.Errorf("%s=%s: %v", variable, value, err)
			}
		}
	}
}

// testKey is the key that accounts of tests have.
const testKey = "sk-proj-0123456789abcdefTHEKEY"

// With --insecure-http it may, and a notice says so.
func TestInsecureHTTPIsAllowed(t *testing.T) {
	credentials := filepath.Join(t.TempDir(), "credentials.json")
	must.Do(t, os.WriteFile(credentials, []byte(`{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r"}`), 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", credentials)
	for args, env := range map[string]map[string]string{
		"--base-url http://api.openai.com/v1":      {"OPENAI_API_KEY": testKey},
		"--base-url HTTP://API.OpenAI.com.:80/v1":  {"OPENAI_API_KEY": testKey},
		"--base-url http://api.openai.com:8080/v1": {"OPENAI_API_KEY": testKey},
		"":                 {"OPENAI_API_KEY": testKey, "OPENAI_BASE_URL": "http://api.openai.com/v1"},
		"--provider azure": {"AZURE_API_KEY": testKey, "AZURE_OPENAI_ENDPOINT": "http://acme.openai.azure.com"},
		"--provider vertex --base-url http://aiplatform.googleapis.com/v1":                                {},
		"--provider bedrock --region eu-west-1 --base-url http://bedrock-runtime.eu-west-1.amazonaws.com": {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": testKey},
		"--base-url http://api.openai.com/v1 --api-key-env MINE":                                          {"MINE": testKey, "OPENAI_ORG_ID": "org-1"},
	} {
		b, err := connectWith(t, env, append([]string{"-o", "x", "--insecure-http"}, strings.Fields(args)...)...)
		if err != nil || slices.ContainsFunc(texts(b), isInClear) == strings.Contains(args, "bedrock") { // a signature has no key in it
			t.Errorf("%s with --insecure-http: %v", args, err)
		}
	}
}

// To others a secret goes with a notice. Notices say that others can read its file, and where a file of --config sends it.
func TestNoticesOfSecretHeaders(t *testing.T) {
	env := map[string]string{"K": "pk-0123456789abcdef", "OPENAI_API_KEY": testKey}
	const openly = "--base-url http://api.openai.com/v1 --api-key-env none --header X-Gateway-Key=env:K"
	exposed := filepath.Join(t.TempDir(), "key")
	must.Do(t, os.WriteFile(exposed, []byte("pk-0123456789abcdef"), 0o600))
	if err := os.Chmod(exposed, 0o644); err != nil { //nolint:gosec // it is what is tested
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "run.yaml")
	must.Do(t, os.WriteFile(config, []byte("base-url: http://127.0.0.1:9\nheaders:\n  X-Gateway-Key: env:K\n"), 0o600))
	for args, want := range map[string]string{
		openly + " --insecure-http":                                                "what is in K is sent unencrypted: api.openai.com is not this machine, and --base-url says http",
		"--base-url http://gateway.lan/v1 --header X-Gateway-Key=env:K":            "what is in K is sent unencrypted: gateway.lan is not this machine",
		"--base-url https://gateway.lan/v1 --header X-Gateway-Key=file:" + exposed: "others can read the key file " + exposed,
		"--config " + config: "what is in K is sent to http://127.0.0.1:9, the base-url in " + config,
	} {
		b, err := connectWith(t, env, append([]string{"-o", "x"}, strings.Fields(args)...)...)
		if err != nil || !slices.ContainsFunc(texts(b), func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("%s: %v, %q", args, err, texts(b))
		}
	}
	for _, args := range []string{"--base-url http://127.0.0.1:9 --header X-Gateway-Key=env:K", "--base-url http://gateway.lan/v1 --header X-Title=t", "--header X-Gateway-Key=env:K"} {
		b, err := connectWith(t, env, append([]string{"-o", "x"}, strings.Fields(args)...)...)
		if err != nil || slices.ContainsFunc(texts(b), func(text string) bool { return strings.Contains(text, "unencrypted") }) {
			t.Errorf("%s: %v, %q", args, err, texts(b))
		}
	}
}
