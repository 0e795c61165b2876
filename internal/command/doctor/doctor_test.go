package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
)

const theKey = "sk-proj-the-key-of-a-user-0123456789"

// look runs headrace doctor --json, and returns its findings and its exit code. It fails if the key is in them.
func look(t *testing.T, env map[string]string, args ...string) (report, int) {
	t.Helper()
	var out strings.Builder
	w := &world.World{
		Name: "headrace", Args: args, Stdout: &out, Stderr: &out, Clock: clockwork.NewRealClock(), Release: func() {},
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
	cmd := Command(w)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--json"))
	err := cmd.ExecuteContext(t.Context())
	code := exit.OK
	if end, is := errors.AsType[*exit.Ending](err); is {
		code = end.Code
	} else if err != nil {
		t.Fatal(args, err)
	}
	if strings.Contains(out.String(), theKey) || strings.Contains(out.String(), "the-key-of-a-user") {
		t.Errorf("%v: the key is shown:\n%s", args, out.String())
	}
	var r report
	must.Do(t, json.Unmarshal([]byte(out.String()), &r))
	if r.ExitCode != code || r.OK != (code == exit.OK) {
		t.Errorf("%v: exit code %d, and the report says %d and %t", args, code, r.ExitCode, r.OK)
	}
	return r, code
}

// of returns the findings of a check in a state, as a text.
func (r report) of(check string, state State) string {
	var all []string
	for _, one := range r.Findings {
		if one.Check == check && one.State == state {
			text := one.Text + " | " + one.Do
			if one.Lane != "" {
				text = one.Lane + ": " + text
			}
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n")
}

// answers serves a status and a body, with a date that is off by some time.
func answers(status int, body string, off time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

const (
	good  = `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	quota = `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`
	rate  = `{"error":{"message":"Rate limit reached for requests","type":"requests","param":null,"code":"rate_limit_exceeded"}}`
)

// Each fault of a server is named, with what to do and its exit code.
func TestFaultsOfServers(t *testing.T) {
	unauthorized := fmt.Sprintf(`{"error":{"message":"Incorrect API key provided: %s.","type":"invalid_request_error","code":"invalid_api_key"}}`, theKey)
	for _, c := range []struct {
		name   string
		serves http.HandlerFunc
		code   int
		check  string
		state  State
		says   string
	}{
		{"all is well", answers(200, good, 0), exit.OK, Call, Well, "answered in"},
		{"the clock is as the server's", answers(200, good, 3*time.Second), exit.OK, Clock, Well, "as the server's"},
		{"the clock is a minute behind", answers(200, good, time.Minute), exit.OK, Clock, Warning, "behind the server's | set the clock"},
		{"the clock is two hours behind", answers(200, good, 2*time.Hour), exit.Usage, Clock, Fault, "behind the server's | set the clock"},
		{"the clock is two hours ahead", answers(200, good, -2*time.Hour), exit.Usage, Clock, Fault, "ahead of the server's | set the clock"},
		{"401", answers(401, unauthorized, 0), exit.Stopped, Call, Fault, "refuses the key: 401 invalid_api_key | put a valid key into OPENAI_API_KEY"},
		{"no balance", answers(429, quota, 0), exit.Stopped, Call, Fault, "You exceeded your current quota, please check your plan and billing details. | add credit or raise the quota"},
		{"throttled", answers(429, rate, 0), exit.OK, Call, Warning, "Rate limit reached for requests | nothing: a run waits"},
		{"no such model", answers(404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`, 0), exit.Stopped, Call, Fault, "check the model's name (--model)"},
		{"not the API", answers(200, `<html>Welcome</html>`, 0), exit.Stopped, Call, Fault, "the address answers, but is not the API"},
		{"down", answers(503, `{}`, 0), exit.OK, Call, Warning, "503"},
		{"broken", answers(500, `{}`, 0), exit.Stopped, Call, Fault, "check whether the provider is down"},
	} {
		server := httptest.NewServer(c.serves)
		r, code := look(t, map[string]string{"OPENAI_API_KEY": theKey}, "--base-url", server.URL+"/v1", "--api-key-env", "OPENAI_API_KEY", "--model", "m")
		if code != c.code || !strings.Contains(r.of(c.check, c.state), c.says) {
			t.Errorf("%s: exit code %d, want %d; not %q in %+v", c.name, code, c.code, c.says, r.Findings)
		}
		if key := r.of(Key, Well); !strings.Contains(key, fmt.Sprintf("OPENAI_API_KEY has it: %d characters", len(theKey))) {
			t.Errorf("%s: of the key it says %q", c.name, key)
		}
		server.Close()
	}
}

// certificate makes a certificate for a host, good until some time from now, and the file of its authority: itself.
func certificate(t *testing.T, host string, good time.Duration) (tls.Certificate, string) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(good),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if ip := net.ParseIP(host); ip != nil {
		of.IPAddresses = []net.IP{ip}
	} else {
		of.DNSNames = []string{host}
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key))(t)
	path := filepath.Join(t.TempDir(), "ca.pem")
	must.Do(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

// A certificate that is over, nearly over, unknown or another host's is named.
func TestCertificates(t *testing.T) {
	for _, c := range []struct {
		name, host string
		good       time.Duration
		trusted    bool
		code       int
		state      State
		says       string
	}{
		{"good", "127.0.0.1", 90 * 24 * time.Hour, true, exit.OK, Well, "TLS 1.3, its certificate is good until " + time.Now().Add(90*24*time.Hour).UTC().Format(time.DateOnly)},
		{"soon over", "127.0.0.1", 24 * time.Hour, true, exit.OK, Warning, "its certificate ends soon"},
		{"expired", "127.0.0.1", -time.Hour, true, exit.Stopped, Fault, "certificate has expired, or the clock here is wrong: check both"},
		{"unknown", "127.0.0.1", 90 * 24 * time.Hour, false, exit.Stopped, Fault, "--ca-file"},
		{"another host's", "elsewhere.example", 90 * 24 * time.Hour, true, exit.Stopped, Fault, "the certificate is for another host"},
	} {
		pair, ca := certificate(t, c.host, c.good)
		server := httptest.NewUnstartedServer(answers(200, good, 0))
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that it is about
		server.StartTLS()
		args := []string{"--base-url", server.URL + "/v1", "--api-key-env", "none", "--model", "m"}
		if c.trusted {
			args = append(args, "--ca-file", ca)
		}
		r, code := look(t, nil, args...)
		if code != c.code || !strings.Contains(r.of(Network, c.state), c.says) {
			t.Errorf("%s: exit code %d, want %d; not %q in %+v", c.name, code, c.code, c.says, r.Findings)
		}
		server.Close()
	}
}

// A port at which nobody listens, and a server that never answers.
func TestNoServer(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	base := "http://" + listener.Addr().String() + "/v1"
	must.Do(t, listener.Close())
	r, code := look(t, nil, "--base-url", base, "--model", "m")
	if got := r.of(Network, Fault); code != exit.Stopped || !strings.Contains(got, "connection refused | check --base-url, and that the server runs: nobody listens there") {
		t.Error(code, got)
	}
	if got := r.of(Call, Skipped); got == "" {
		t.Error("a call was made")
	}
}

// A server that takes the connection and says nothing is no answer.
func TestSilentServer(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = listener.Close() }()
	base := "http://" + listener.Addr().String() + "/v1"
	fs, flags := pflag.NewFlagSet("run", pflag.ContinueOnError), &settings.Flags{Looks: true}
	flags.Register(fs)
	must.Do(t, fs.Parse([]string{"--base-url", base}))
	nothing := func(string) (string, bool) { return "", false }
	must.Do(t, flags.Complete(fs, nothing))
	d := &doctor{World: &world.World{Clock: clockwork.NewRealClock(), Env: nothing}, flags: flags, patience: time.Millisecond}
	if d.checkServers(t.Context()) || d.found.code != exit.Stopped || !strings.Contains(d.found.all[0].Text, "no answer within 1 ms") {
		t.Error(d.found)
	}
}

// With --offline nobody is called, and what is wrong here is still found.
func TestOffline(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer server.Close()
	r, code := look(t, nil, "--base-url", server.URL+"/v1", "--offline", "--ca-file", "nowhere.pem")
	if got := r.of(Network, Fault); code != exit.Usage || calls.Load() > 0 || !strings.Contains(got, "nowhere.pem") {
		t.Error(code, calls.Load(), r.Findings)
	}
	if got := r.of(Settings, Well); !strings.HasPrefix(got, "2 settings set: base-url ") || !strings.Contains(got, "ca-file nowhere.pem (flag)") {
		t.Error(got)
	}
}

// Settings, keys and files that a run would refuse are named, each with exit code 2.
func TestFaultsHere(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	in := file("in.jsonl", `{"prompt":"a","model":"m"}`+"\n")
	line := journal.LineOf("a", journal.Headrace{Line: 1, Key: strings.Repeat("ab", 16)})
	line.Response = &journal.Response{StatusCode: http.StatusOK, Body: []byte("{}")}
	ours := string(journal.AppendLine(nil, &line))
	locked := file("locked.jsonl", "")
	lock := must.Get(journal.LockOutput(locked))(t)
	defer func() { must.Do(t, lock.Unlock()) }()
	key := map[string]string{"OPENAI_API_KEY": theKey}
	for _, c := range []struct {
		env         map[string]string
		args, check string
		state       State
		says        string
	}{
		{key, "--rpm -1 --text maybe", Settings, Fault, `--text: "maybe" is not known: use auto, always or never` + " | \n" + "--rpm: -1 is not a limit"},
		{nil, "--model m --base-url host.example/v1", Network, Fault, "--base-url: it must begin with http:// or https://: try https://host.example/v1"},
		{nil, "--model m --base-url https://host.example/v1?k=" + theKey, Network, Fault, "--base-url: it must not have a user, query or fragment"},
		{nil, "--model m", Key, Fault, "OPENAI_API_KEY is not set | put your key into OPENAI_API_KEY, name another"},
		{nil, "--model m --api-key-env MINE", Key, Fault, "MINE is not set | put your key into MINE"},
		{nil, "--provider gemini --model m", Key, Fault, "is not set | put your key into one of "},
		{nil, "--provider bedrock --region eu-west-1 --model m", Key, Fault, "or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
		{nil, "--model m --api-key-file " + dir + "/none", Key, Fault, "there is no such file"},
		{nil, "--model m --api-key-file " + file("nokey", ""), Key, Fault, "nokey: there is no key in it"},
		{nil, "--model m --api-key-file " + dir, Key, Fault, "it is not a regular file"},
		{key, "--model m --header x-team=env:NONE", Key, Fault, "NONE is not set, and --header X-Team has its value there"},
		{map[string]string{"OPENAI_API_KEY": ` "` + theKey + `"`}, "--model m", Key, Warning, "and blanks around it | remove"},
		{map[string]string{"OPENAI_API_KEY": `"` + theKey + `"`}, "--model m", Key, Warning, "and quotation marks among them | remove"},
		{key, in + " -o " + dir + "/out.jsonl", Input, Well, "in.jsonl: 1 item"},
		{key, dir + "/none.jsonl", Input, Fault, "none.jsonl"},
		{key, file("bad.jsonl", "{\n{}\n") + " --model m", Input, Fault, "bad.jsonl:1: "},
		{key, file("nomodel.jsonl", `{"prompt":"a"}`+"\n"), Input, Fault, "1 line without a model, the first is line 1 | add --model NAME"},
		{key, file("empty.jsonl", ""), Input, Warning, "empty.jsonl: 0 items | check the file"},
		{key, "-o " + locked, Output, Fault, "is in use by"},
		{key, "-o " + dir, Output, Fault, "is not a regular file | name another with -o"},
		{key, "-o " + dir + "/none/out.jsonl", Disk, Fault, "there is no such folder | make it: mkdir -p "},
		{key, "-o " + file("old.jsonl", ours), Output, Well, "bytes: a run continues it"},
		{key, "-o " + dir + "/old.jsonl --provider sim", Output, Fault, "its answers are not simulated, but this run's are"},
		{key, "-o " + dir + "/old.jsonl --provider sim --fresh", Output, Well, "a run starts over"},
		{key, "-o " + file("foreign.jsonl", "{}\n"), Output, Fault, "foreign.jsonl: it is not a result file of headrace"},
		{key, "-o " + file("half.jsonl", ours+"{}\n"), Output, Fault, "half.jsonl: line 2: "},
		{key, "-o " + dir + "/old.jsonl --errors " + dir + "/foreign.jsonl", Output, Fault, "foreign.jsonl: it is not a result file"},
		{key, in + " -o " + in, Output, Fault, "in.jsonl"},
		{key, "-o " + dir + "/new.jsonl", Disk, Well, "a sync takes "},
	} {
		r, code := look(t, c.env, append(strings.Fields(c.args), "--offline")...)
		if want := map[State]int{Fault: exit.Usage}[c.state]; code != want && c.check != Disk || !strings.Contains(r.of(c.check, c.state), c.says) {
			t.Errorf("%s: exit code %d, want %d; not %q in %+v", c.args, code, want, c.says, r.Findings)
		}
	}
	left := must.Get(filepath.Glob(dir + "/.headrace*"))(t)
	if _, err := os.Stat(dir + "/new.jsonl"); err == nil || len(left) > 0 {
		t.Error("doctor has left files", left)
	}
}

// Lanes of a file are looked at one by one; servers that several share, once.
func TestLanes(t *testing.T) {
	var looks atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			looks.Add(1)
		}
		status, body := 200, good
		if r.Header.Get("Authorization") == "Bearer bad" {
			status, body = 401, `{"error":{"message":"no","code":"invalid_api_key"}}`
		}
		answers(status, body, 0)(w, r)
	}))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "lanes.yaml")
	must.Do(t, os.WriteFile(config, fmt.Appendf(nil, `lanes:
  a: {provider: openai, base-url: "%[1]s/v1", api-key-env: A, models: {m: m}}
  b: {provider: openai, base-url: "%[1]s/v1", api-key-env: B, models: {m: m}}
`, server.URL), 0o600))
	r, code := look(t, map[string]string{"A": theKey, "B": "bad"}, "--config", config)
	if code != exit.Stopped || !strings.HasPrefix(r.of(Call, Well), "a: answered in") || !strings.Contains(r.of(Call, Fault), "refuses the key") || looks.Load() != 1 {
		t.Error(code, looks.Load(), r.Findings)
	}
	if r, code = look(t, map[string]string{"A": theKey}, "--config", config); code != exit.Usage || r.of(Key, Fault) == "" || r.of(Call, Skipped) == "" {
		t.Error(code, r.Findings)
	}
}

// The help names each check.
func TestHelpNamesEachCheck(t *testing.T) {
	for _, check := range []string{Settings, Input, Output, Disk, Files, Screen, Key, Network, Clock, Call} {
		if !strings.Contains(long, "\n  "+check+" ") {
			t.Errorf("the help has no line for %q", check)
		}
	}
}
