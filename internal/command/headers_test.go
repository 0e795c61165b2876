package command

import (
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// came is a server that answers well, and keeps the headers of each call.
type came struct {
	*httptest.Server
	mu      sync.Mutex // for what follows
	headers []http.Header
}

func newCame(t *testing.T) *came {
	t.Helper()
	c := &came{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.headers = append(c.headers, r.Header.Clone())
		c.mu.Unlock()
		says(http.StatusOK, "application/json", goodAnswer)(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// latest are the headers of the latest call.
func (c *came) latest(t *testing.T) http.Header {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.headers) == 0 {
		t.Fatal("no call came")
	}
	return c.headers[len(c.headers)-1]
}

func (c *came) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.headers)
}

// filesIn writes files of a folder, and gives their names.
func filesIn(t *testing.T, dir string) func(name, text string) (path string) {
	return func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
}

// Headers of the user go out with every call: from flags, from a variable and from the file of
// --config, in which those have a section. A flag beats the file, for each header by itself.
func TestHeadersGoOut(t *testing.T) {
	dir := t.TempDir()
	file := filesIn(t, dir)
	config := file("run.yaml", "headers:\n  anthropic-beta: one-2025-01-01\n  x-portkey-api-key: env:PORTKEY_API_KEY\n  X-N: 5\n")
	single := file("single.yaml", "headers:\n  X-Title: from a file\n")
	flat := file("flat.yaml", "header: X-Title=flat\n")
	secret := file("secret", "pk-file-0123456789\n")
	env := map[string]string{
		"PORTKEY_API_KEY": "pk-env-0123456789", "HELICONE_API_KEY": "sk-helicone-0123456789\n", "HELICONE": "Bearer sk-helicone-0123456789", "OPENAI_API_KEY": testKey,
	}
	own := "headrace/" + strings.Trim(account.Version(), "()")
	if !regexp.MustCompile(`^headrace/[!-'*-~]+$`).MatchString(own) {
		t.Errorf("%q is no product of RFC 9110", own)
	}
	s := newCame(t)
	for _, c := range []struct {
		args []string
		env  map[string]string
		want map[string]string // "": it is not there
	}{
		{nil, nil, map[string]string{"User-Agent": own, "Authorization": "Bearer " + testKey}},
		{[]string{"--header", "user-agent=acme/1"}, nil, map[string]string{"User-Agent": "acme/1"}},
		{[]string{"--header", "HTTP-Referer=https://example.com/?a=b", "--header", "X-Title=My app"}, nil, map[string]string{"Http-Referer": "https://example.com/?a=b", "X-Title": "My app", "User-Agent": own}},
		{[]string{"--header", "x-portkey-api-key=env:PORTKEY_API_KEY"}, nil, map[string]string{"X-Portkey-Api-Key": "pk-env-0123456789", "Authorization": "Bearer " + testKey}},
		{[]string{"--header", "x-portkey-api-key=file:" + secret}, nil, map[string]string{"X-Portkey-Api-Key": "pk-file-0123456789"}},
		{[]string{"--header", "Helicone-Auth=Bearer env:HELICONE_API_KEY"}, nil, map[string]string{"Helicone-Auth": "Bearer sk-helicone-0123456789"}},
		{[]string{"--header", "Helicone-Auth=env:HELICONE"}, nil, map[string]string{"Helicone-Auth": "Bearer sk-helicone-0123456789"}},
		{[]string{"--config", config}, nil, map[string]string{"Anthropic-Beta": "one-2025-01-01", "X-Portkey-Api-Key": "pk-env-0123456789", "X-N": "5"}},
		{[]string{"--config", config, "--header", "Anthropic-Beta=two-2025-01-01"}, nil, map[string]string{"Anthropic-Beta": "two-2025-01-01", "X-N": "5"}},
		{[]string{"--config", single}, nil, map[string]string{"X-Title": "from a file"}},
		{[]string{"--config", flat}, nil, map[string]string{"X-Title": "flat"}},
		{[]string{"--config", single}, map[string]string{"HEADRACE_HEADER": "X-Title=from a variable\nX-B=2\n"}, map[string]string{"X-Title": "from a variable", "X-B": "2"}},
		{[]string{"--header", "X-B=3"}, map[string]string{"HEADRACE_HEADER": "X-Title=from a variable"}, map[string]string{"X-Title": "", "X-B": "3"}},
		{[]string{"--api-key-env", "none"}, nil, map[string]string{"Authorization": ""}},
		{[]string{"--api-key-env", "none", "--header", "authorization=Bearer env:PORTKEY_API_KEY"}, nil, map[string]string{"Authorization": "Bearer pk-env-0123456789"}},
		{[]string{"--api-key-env", "none", "--header", "api-key=env:PORTKEY_API_KEY"}, nil, map[string]string{"Api-Key": "pk-env-0123456789", "Authorization": ""}},
	} {
		all := map[string]string{}
		for _, from := range []map[string]string{env, c.env} {
			for name, value := range from {
				all[name] = value
			}
		}
		in := writeLines(t, `{"prompt":"hi"}`+"\n")
		code, _, said := inWorld(t, nil, all, append([]string{"run", in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"), "--base-url", s.URL, "--model", "m"}, c.args...)...)
		if code != exit.OK {
			t.Fatalf("%q: exit code %d: %s", c.args, code, said)
		}
		for name, want := range c.want {
			if got := s.latest(t).Get(name); got != want {
				t.Errorf("%q: %s is %q, not %q", c.args, name, got, want)
			}
		}
	}
}

// Headers that would leak a secret or break every call end the command with 2 before any call, and
// no value is repeated.
func TestHeadersThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filesIn(t, dir)
	const secret = "0123456789abcdefXYZ"
	empty, two := file("empty", "\n"), file("two", "a\nb\n")
	wrong := file("wrong.yaml", "limit: 3\nheaders:\n  X-Api-Token: "+secret+"\n  X-A: [1, 2]\n  X-B: env:NOT_SET_9\n  Host: h\n")
	none := file("none.yaml", "headers: "+secret+"\n")
	key := file("key", secret)
	odd := file("odd.yaml", "headers:\n  X-A=b: c\n  X-B: 1\n  x-b: 2\n")
	s := newCame(t)
	for _, c := range []struct{ args, says string }{
		{"--header x-gateway-key=" + secret, "--header: x-gateway-key seems to have a key in its value: put the key into a variable or a file"},
		{"--header Authorization=" + secret, "--header: Authorization seems to have a key"},
		{"--header Authorization=env:K", "--header: Authorization has the provider's key, which --api-key-env names: to send another, add --api-key-env none"},
		{"--header X-API-KEY=env:K", "--header: X-Api-Key has the provider's key"},
		{"--header api-key=file:" + key, "--header: Api-Key has the provider's key"},
		{"--header x-goog-api-key=env:K", "--header: X-Goog-Api-Key has the provider's key"},
		{"--header x-amz-security-token=env:K", "--header: X-Amz-Security-Token has the provider's key"},
		{"--header X-A=1 --header x-a=2", "--header: X-A is set twice: keep one"},
		{"--header Content-Type=text/plain --header Host=h", "--header: Content-Type cannot be set: bodies are JSON"},
		{"--header X-A=env:NOT_SET_9", "NOT_SET_9 is not set, and --header X-A has its value there: set it"},
		{"--header X-A=env:EMPTY", "EMPTY is not set, and --header X-A has its value there"},
		{"--header X-A=env:CONTROL", "the key has a character that headers cannot have: check CONTROL"},
		{"--header X-A=file:" + dir + "/not-there", "--header X-A: " + dir + "/not-there: there is no such file: check its name"},
		{"--header X-A=file:" + empty, "--header X-A: " + empty + ": there is no key in it"},
		{"--header X-A=file:" + two, "--header X-A: " + two + ": it has more than one line"},
		{"--header X-A=file:" + dir, "--header X-A: " + dir + ": it is not a regular file"},
		{"--api-key-env none --api-key-file " + key, "--api-key-env none sends no key, and --api-key-file names one: remove one of the two"},
		{"--config " + wrong, wrong + ":3: headers: X-Api-Token seems to have a key in its value"},
		{"--config " + wrong, wrong + ":4: X-A needs a single value: write one a line below it"},
		{"--config " + wrong, wrong + ":6: headers: Host cannot be set"},
		{"--config " + odd, odd + ":2: headers: a name has a character that no header's name may have"},
		{"--config " + odd, odd + ":4: headers: X-B is set twice: keep one"},
		{"--config " + none, none + ":1: headers has no headers: write one a line below it"},
	} {
		in := writeLines(t, `{"prompt":"hi"}`+"\n")
		out := filepath.Join(filepath.Dir(in), "out.jsonl")
		env := map[string]string{"K": secret, "EMPTY": " ", "CONTROL": secret + "\x01z"}
		code, stdout, said := inWorld(t, nil, env, append([]string{"run", in, "-o", out, "--base-url", s.URL, "--model", "m"}, strings.Fields(c.args)...)...)
		first, _, _ := strings.Cut(said, "then run:")
		if code != exit.Usage || !strings.Contains(said, c.says) || strings.Contains(stdout+first, secret) {
			t.Errorf("%s: exit code %d: %s", c.args, code, said)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: there is an output", c.args)
		}
	}
	if s.count() > 0 {
		t.Errorf("%d calls were made", s.count())
	}
	code, _, said := inWorld(t, nil, nil, "run", "in.jsonl", "-o", "x", "--header", "X-User=a\r\nX-Evil: 1")
	if code != exit.Usage || !strings.Contains(said, "X-User has a character that headers cannot have") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// Headers follow a redirect at home, and none to another host.
func TestHeadersStayAtHome(t *testing.T) {
	elsewhere, home := newCame(t), newCame(t)
	away := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if away {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/there") {
			home.Config.Handler.ServeHTTP(w, r)
			return
		}
		http.Redirect(w, r, "/there"+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	for _, away = range []bool{true, false} {
		in := writeLines(t, `{"prompt":"hi"}`+"\n")
		code, _, said := inWorld(t, nil, map[string]string{"K": "pk-0123456789abcdef"}, "run", in, "-o", in+".out", "--base-url", server.URL, "--model", "m", "--header", "X-Gateway-Key=env:K", "--header", "X-Title=t")
		if (code == exit.OK) == away {
			t.Errorf("exit code %d: %s", code, said)
		}
	}
	if elsewhere.count() > 0 || home.latest(t).Get("X-Gateway-Key") != "pk-0123456789abcdef" || home.latest(t).Get("X-Title") != "t" {
		t.Errorf("%d calls elsewhere, %v at home", elsewhere.count(), home.latest(t))
	}
}

// Other headers make no other items: a run does not ask answered items again.
func TestHeadersAreNotInKeys(t *testing.T) {
	s := newCame(t)
	in := writeLines(t, `{"prompt":"hi"}`+"\n")
	out := filepath.Join(filepath.Dir(in), "out.jsonl")
	for _, header := range []string{"X-Title=one", "X-Title=two", "X-Gateway-Key=env:K"} {
		if code, _, said := inWorld(t, nil, map[string]string{"K": "pk-0123456789abcdef"}, "run", in, "-o", out, "--base-url", s.URL, "--model", "m", "--header", header); code != exit.OK {
			t.Errorf("exit code %d: %s", code, said)
		}
	}
	if s.count() != 1 {
		t.Errorf("%d calls", s.count())
	}
}

// A signature is made as without other headers, and signs those of Amazon's among them. With
// --api-key-env none there is none, wherever keys come from.
func TestHeadersNextToASignature(t *testing.T) {
	s := newCame(t)
	run := func(args ...string) http.Header {
		t.Helper()
		in := writeLines(t, `{"prompt":"hi"}`+"\n")
		env := map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": testKey, "K": "pk-0123456789abcdef"}
		_, _, _ = inWorld(t, nil, env, append([]string{"run", in, "-o", in + ".out", "--provider", "bedrock", "--region", "eu-west-1", "--base-url", s.URL, "--model", "m"}, args...)...)
		return s.latest(t)
	}
	h := run("--header", "X-Gateway-Key=env:K", "--header", "x-amz-meta-team=env:K", "--header", "x-amz-meta-step=1", "--header", "X-Title=t")
	if signed := h.Get("Authorization"); !strings.Contains(signed, "SignedHeaders=content-type;host;x-amz-date;x-amz-meta-step;x-amz-meta-team,") || h.Get("X-Gateway-Key") == "" || h.Get("X-Title") != "t" || h.Get("X-Amz-Meta-Team") == "" {
		t.Errorf("%v", h)
	}
	if h = run("--api-key-env", "none", "--header", "X-Gateway-Key=env:K"); h.Get("Authorization") != "" || h.Get("X-Gateway-Key") == "" {
		t.Errorf("with none: %v", h)
	}
}

// A worker's headers, also those of its file and its variable, go only to a provider that the worker
// names, and to none that a job names. An authority that it trusts gives nothing away.
func TestHeadersOfAWorker(t *testing.T) {
	s, a := newCame(t), newAuthority(t)
	config := filepath.Join(t.TempDir(), "run.yaml")
	must.Do(t, os.WriteFile(config, []byte("headers:\n  X-Gateway-Key: env:K\n  X-Title: t\n"), 0o600))
	env := map[string]string{"K": "pk-0123456789abcdef"}
	job := map[string]string{"base-url": s.URL, "model": "m"}
	_, certificate, key := a.pair("client", x509.ExtKeyUsageClientAuth)
	for args, sent := range map[string]bool{
		"--header X-Gateway-Key=env:K --header X-Title=t":                       false,
		"--header X-Title=t":                                                    false,
		"--config " + config:                                                    false,
		"--client-cert " + certificate + " --client-key " + key:                 false,
		"--ca-file " + a.file:                                                   true,
		"--config " + config + " --base-url " + s.URL:                           true,
		"--base-url " + s.URL + " --header X-Gateway-Key=env:K --header X-B=b":  true,
		"--provider groq --base-url " + s.URL + " --header X-Gateway-Key=env:K": true,
	} {
		calls, err := settingsWith(t, env, settings.Vendor|settings.Keys|settings.Net|settings.Pace|settings.Config, strings.Fields(args)...).For(job)
		if err == nil != sent {
			t.Errorf("%s: %v", args, err)
		}
		if err != nil {
			continue
		}
		_, err = calls.Account.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Model: "m", Lane: calls.Account.Name, Body: []byte(`{"model":"m","messages":[]}`)})
		if h := s.latest(t); err != nil || strings.Contains(args, "--base-url") && h.Get("X-Gateway-Key") != "pk-0123456789abcdef" || strings.Contains(args, "X-B") && h.Get("X-B") != "b" {
			t.Errorf("%s: %v, %v", args, err, h)
		}
		calls.Close()
	}
}

// Keys in headers tell accounts apart where there is no other key.
func TestHeadersTellAccountsApart(t *testing.T) {
	limit := func(key, own, args string) string {
		t.Helper()
		calls, err := settingsWith(t, map[string]string{"K": key, "OPENAI_API_KEY": own}, settings.Vendor|settings.Keys|settings.Net|settings.Pace|settings.Config, strings.Fields(args)...).Connect()
		if err != nil {
			t.Fatal(err)
		}
		defer calls.Close()
		return calls.Account.Limit("m") + " " + calls.Account.Identity()
	}
	const none = "--api-key-env none --header X-Gateway-Key=env:K"
	one, other := limit("pk-one-0123456789", "", none), limit("pk-other-0123456789", "", none)
	if one == other || one != limit("pk-one-0123456789", testKey, none+" --header X-Title=t") {
		t.Errorf("%s and %s", one, other)
	}
	name := func(limit string) string { before, _, _ := strings.Cut(limit, " "); return before }
	const both = "--header X-Gateway-Key=env:K"
	if name(limit("pk-one-0123456789", testKey, both)) != name(limit("pk-other-0123456789", testKey, both)) || name(one) == name(other) {
		t.Error("an account is the provider's if its key is known, and else the gateway's")
	}
}
