package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/sim"
)

// Where the limits are of an account all models have one lane, else each has its own.
func TestLanesOfAVendor(t *testing.T) {
	for name, want := range map[string]string{"mistral": "mistral/all-models", "groq": "groq/m"} {
		r := &runner{
			World: &World{env: func(string) (string, bool) { return testKey, true }},
			flags: &runFlags{inputFlags: inputFlags{whomFlags: whomFlags{provider: name, maxTokens: 1}}, keyEnv: "K", keyEnvGiven: true},
		}
		if err := r.flags.resolve(pflag.NewFlagSet("run", pflag.ContinueOnError), r.env); err != nil {
			t.Fatal(err)
		}
		b, err := r.connect()
		if err != nil || b.lane("m") != want {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

// What a vendor is known to bear, or to need, holds where the user says nothing; it never
// raises how many calls are under way.
func TestUseVendor(t *testing.T) {
	for _, tt := range []struct {
		name        string
		args        []string
		concurrency int
		timeout     time.Duration
	}{
		{"openai", nil, 64, 10 * time.Minute},
		{"deepseek", nil, 64, 30 * time.Minute}, // it bears 500
		{"moonshot", nil, 1, 10 * time.Minute},
		{"moonshot", []string{"-c", "9"}, 9, 10 * time.Minute},
		{"deepseek", []string{"--timeout", "1m"}, 64, time.Minute},
	} {
		f, fs := &runFlags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.register(fs)
		if err := fs.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		f.vendor, _ = catalog.Named(tt.name)
		f.useVendor(fs, func(string) (string, bool) { return "", false })
		if f.concurrency != tt.concurrency || f.timeout != tt.timeout || f.keyEnv != f.vendor.Keys[0] {
			t.Errorf("%+v: %d calls, %v, %s", tt, f.concurrency, f.timeout, f.keyEnv)
		}
	}
}

// A call is expected to draw what its provider counts when it lets it in.
func TestCostOf(t *testing.T) {
	const body = `{"prompt":[1,2,3],"max_tokens":10}` // token ids count exactly
	for preset, want := range map[string]limiter.Cost{
		"auto":      {Requests: 1, Input: 3, Output: 7}, // the larger of both
		"bedrock":   {Requests: 1, Input: 3, Output: 10},
		"anthropic": {Requests: 1, Input: 3, Output: 10},
		"gemini":    {Requests: 1, Input: 3},
	} {
		if got := costOf(whoAnswers(preset, providerOpenAI, "").Charge, &prompts.Request{Body: []byte(body)}); got != want {
			t.Errorf("%s: %+v, want %+v", preset, got, want)
		}
	}
}

// A call to a model that only reads draws no output that nobody bounds.
func TestCostOfReading(t *testing.T) {
	charge := whoAnswers("bedrock", providerOpenAI, "").Charge
	for operation, most := range map[string]float64{prompts.ChatCompletions: 4096, prompts.Embeddings: 1, prompts.Rerank: 1} {
		q := &prompts.Request{Endpoint: operation, Body: []byte(`{"input":[1,2,3]}`)}
		if got := costOf(charge, q); got.Input != 3 || got.Output != most {
			t.Errorf("%s: %+v, want output of %v", operation, got, most)
		}
	}
}

func whoAnswers(preset, name, base string) catalog.Vendor {
	f := whomFlags{provider: name, baseURL: base}
	f.vendor, _ = catalog.Named(name)
	return f.whoAnswers(preset)
}

// Who answers is known by --preset, by --provider, or of openai by the base URL.
func TestWhoAnswers(t *testing.T) {
	const local = "http://127.0.0.1:8000/v1"
	for _, tt := range []struct{ preset, name, base, want string }{
		{presetAuto, providerOpenAI, "", "openai"},
		{presetAuto, providerOpenAI, local, "local"},
		{presetAuto, providerSim, local, "openai"},
		{"groq", providerOpenAI, local, "groq"},
		{presetAuto, "groq", local, "groq"},
		{"mistral", "groq", "", "mistral"},
	} {
		if got := whoAnswers(tt.preset, tt.name, tt.base).Name; got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// What --preset names are vendors, and nobody is named twice.
func TestPresetsAreVendors(t *testing.T) {
	for i, name := range presets {
		if v, ok := catalog.Named(name); !ok || v.Name != name || i > 0 && presets[i-1] >= name {
			t.Errorf("%s: %v, %q", name, ok, v.Name)
		}
	}
}

// What is quoted comes out of a shell as it went in.
func TestShellQuote(t *testing.T) {
	for _, word := range []string{"plain-1_2.jsonl", "a b", "", "it's", `"`, "$HOME", "`x`", "a\nb", "a\n", "100%\x1b'\\\\ü\u202e", "*", "é", "~", "--x=y,z", "#"} {
		quoted := shellQuote(word)
		out, err := exec.Command("sh", "-c", "printf %s "+quoted).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q: quoted %s, came out as %q, %v", word, quoted, out, err)
		}
	}
	if got := shellQuote("http://127.0.0.1:8080/v1"); got != "http://127.0.0.1:8080/v1" {
		t.Errorf("quoted without need: %s", got)
	}
}

// The line that resumes is the command as it was given; a run to standard output
// goes on from a file.
func TestResumeLine(t *testing.T) {
	tests := []struct {
		args, want string
		toStdout   bool
	}{
		{"run in.jsonl -o out.jsonl -c 8", "headrace run in.jsonl -o out.jsonl -c 8", false},
		{"run in.jsonl -o - -c 8", "headrace run in.jsonl -o results.jsonl -c 8", true},
		{"run - --output -", "headrace run - --output results.jsonl", true},
		{"run - --output=-", "headrace run - --output=results.jsonl", true},
		{"run - -o-", "headrace run - --output=results.jsonl", true},
		{"run in.jsonl", "headrace run in.jsonl -o results.jsonl", true},
	}
	for _, tt := range tests {
		w := &World{name: "headrace", args: strings.Fields(tt.args)}
		if got := w.resumeLine(tt.toStdout); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.args, got, tt.want)
		}
	}
	w := &World{name: "go run ./cmd/headrace", args: []string{"run", "a b"}}
	if got := w.resumeLine(false); got != "go run ./cmd/headrace run 'a b'" {
		t.Error(got)
	}
}

// What go run has built is called by go run again, if its source is here.
func TestCalledAs(t *testing.T) {
	built := "/tmp/go-build123/b001/exe/headrace"
	t.Chdir(t.TempDir())
	if got := calledAs(built); got != "headrace" {
		t.Error(got)
	}
	if err := os.MkdirAll("cmd/headrace", 0o700); err != nil {
		t.Fatal(err)
	}
	if got := calledAs(built); got != "go run ./cmd/headrace" {
		t.Error(got)
	}
	if got := calledAs("./headrace"); got != "./headrace" {
		t.Error(got)
	}
}

// A run that the provider stopped has its exit code, whatever the cause: calls were made.
func TestExitCodes(t *testing.T) {
	for kind, want := range map[provider.Kind]int{
		provider.QuotaExhausted: 3, provider.Unauthorized: 3, provider.ModelNotFound: 3, provider.Misconfigured: 3,
	} {
		r := &runner{World: &World{env: func(string) (string, bool) { return "", false }}, flags: &runFlags{}, backend: &backend{}}
		cause := fmt.Errorf("%w: %w", batch.ErrNotRun, &provider.Error{Kind: kind})
		var end *ending
		if err := r.stoppedBy(&promptfile.Sums{Stopped: cause}); !errors.As(err, &end) || end.code != want {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// A wait that is too long stops a run too, and the ending gives its reason.
func TestStoppedByALongWait(t *testing.T) {
	r := &runner{World: &World{}, flags: &runFlags{}, backend: &backend{}}
	at := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	refusal := &provider.Error{Kind: provider.Throttled, Status: 429, Message: "come back later"}
	for wait, want := range map[time.Duration]string{
		3 * time.Hour:  "stopped: the provider asks to wait for 3.0 h, until 15:00:00 (throttled: 429: come back later); a run waits 15 min at most\n",
		20 * time.Hour: "stopped: the provider asks to wait for 20.0 h, until 2026-01-02 15:00:00 (throttled: 429: come back later); a run waits 15 min at most\n",
	} {
		cause := fmt.Errorf("%w: %w", batch.ErrNotRun, &batch.WaitError{Lane: "openai/m", Wait: wait, Until: at, Most: machine.MaxDirected, Cause: refusal})
		var end *ending
		if err := r.stoppedBy(&promptfile.Sums{Stopped: cause}); !errors.As(err, &end) || end.code != ExitStopped || !strings.HasPrefix(end.text, want) || !strings.Contains(end.text, "wait until then") {
			t.Errorf("%+v", end)
		}
	}
	refusal.Message = strings.Repeat("long-winded ", 40)
	w := &batch.WaitError{Lane: "openai/m", Wait: 3 * time.Hour, Until: at, Most: machine.MaxDirected, Cause: refusal}
	if told := r.reason(w); !errors.Is(told, batch.ErrWaitTooLong) || !strings.HasSuffix(told.Error(), "…); a run waits 15 min at most") {
		t.Error(told)
	}
}

// The version is what the build knows.
func TestVersionLine(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got := versionLine(info); !strings.HasPrefix(got, "headrace v1.2.3 commit abc (with changes) go1.") {
		t.Error(got)
	}
	if got := versionLine(nil); !strings.HasPrefix(got, "headrace (unknown) go1.") {
		t.Error(got)
	}
}

// The flags of sim change its profile and nothing else of it.
func TestSimFlags(t *testing.T) {
	config := func(args ...string) (sim.Config, error) {
		var f simFlags
		fs := pflag.NewFlagSet("sim", pflag.ContinueOnError)
		f.register(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		return f.config(fs)
	}
	got, err := config("--rpm", "60", "--latency", "1s", "--sigma", "0.1", "--retry-after", "sometimes",
		"--errors", "500=0.1, reset=0.02", "--outage", "10s+5s,1m+30s:hang", "--quota-after", "7", "--headers", "--seed", "3")
	if err != nil {
		t.Fatal(err)
	}
	want := sim.Demo()
	want.RPM, want.Latency, want.RetryAfter, want.Headers = 60, sim.Latency{Median: time.Second, Sigma: 0.1}, sim.Sometimes, true
	want.Errors = sim.Rates{Server500: 0.1, Reset: 0.02}
	want.Outages = []sim.Outage{{From: 10 * time.Second, For: 5 * time.Second, Mode: sim.Outage503}, {From: time.Minute, For: 30 * time.Second, Mode: sim.OutageHang}}
	want.QuotaAfter, want.Seed, want.TrackIDs = 7, 3, true
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, bad := range []string{"--errors=500", "--errors=500=x", "--errors=0.1", "--outage=5s", "--outage=x+5s", "--outage=5s+y", "--outage=1s+1s:gone", "--retry-after=maybe", "--profile=slow", "--rpm=-1"} {
		if _, err := config(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// A key over plain http to another machine is warned of; to this one it is not.
func TestUnencryptedKey(t *testing.T) {
	for base, want := range map[string]int{"http://example.test/v1": 1, "https://example.test/v1": 0, "http://127.0.0.1:1/v1": 0, "http://localhost/v1": 0} {
		r := &runner{World: &World{env: func(string) (string, bool) { return testKey, true }}, flags: &runFlags{inputFlags: inputFlags{whomFlags: whomFlags{provider: providerOpenAI, maxTokens: 1, baseURL: base}}, keyEnv: defaultKeyEnv, keyEnvGiven: true, concurrency: 1}}
		if err := r.flags.resolve(pflag.NewFlagSet("", pflag.ContinueOnError), func(string) (string, bool) { return "", false }); err != nil {
			t.Fatal(err)
		}
		b, err := r.connect()
		if err != nil || len(b.notice) != want {
			t.Errorf("%s: %+v, %v", base, b, err)
		}
	}
}

// A run that was stopped has not ended well while the output may not stand in its
// order; the reason of the stop decides the code. If nothing is left to do, it has.
func TestVerdictOfWhatIsLeft(t *testing.T) {
	full := fmt.Errorf("saver: write out.jsonl: %w", syscall.ENOSPC)
	for _, tt := range []struct {
		sums promptfile.Sums
		want int
	}{
		{promptfile.Sums{}, ExitOK},
		{promptfile.Sums{Full: full}, ExitOK},
		{promptfile.Sums{Unordered: true}, ExitInterrupted},
		{promptfile.Sums{Left: true}, ExitInterrupted},
		{promptfile.Sums{Unordered: true, Full: full}, ExitOutput},
		{promptfile.Sums{RunErr: batch.ErrDrained, Full: full}, ExitOutput},
		{promptfile.Sums{Left: true, Full: full}, ExitOutput},
	} {
		h := &halt{drain: make(chan struct{}), why: errInterrupted, ctx: t.Context()}
		close(h.drain)
		r := &runner{World: &World{name: "headrace"}, flags: &runFlags{output: "out.jsonl"}, halt: h}
		var end *ending
		if err := r.verdict(&tt.sums); errors.As(err, &end) && end.code != tt.want || err == nil && tt.want != ExitOK {
			t.Errorf("%+v: %v, want code %d", tt.sums, err, tt.want)
		}
	}
}
