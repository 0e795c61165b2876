package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/sim"
)

// A call is expected to draw what its provider counts when it lets it in.
func TestCostOf(t *testing.T) {
	const body = `{"prompt":[1,2,3],"max_tokens":10}` // token ids count exactly
	for preset, want := range map[string]limiter.Cost{
		"auto":      {Requests: 1, Input: 3, Output: 7}, // the larger of both
		"bedrock":   {Requests: 1, Input: 3, Output: 10},
		"anthropic": {Requests: 1, Input: 3, Output: 10},
		"gemini":    {Requests: 1, Input: 3},
	} {
		if got := costOf(presetOf(preset, providerOpenAI, ""), []byte(body)); got != want {
			t.Errorf("%s: %+v, want %+v", preset, got, want)
		}
	}
}

// A preset is known by the base URL, unless it is named or simulated.
func TestPresetOf(t *testing.T) {
	const local = "http://127.0.0.1:8000/v1"
	for _, tt := range []struct{ preset, name, base, want string }{
		{presetAuto, providerOpenAI, "", "openai"},
		{presetAuto, providerOpenAI, local, "local"},
		{presetAuto, providerSim, local, "openai"},
		{"groq", providerOpenAI, local, "groq"},
	} {
		if got := presetOf(tt.preset, tt.name, tt.base).Name; got != tt.want {
			t.Errorf("%+v: %s", tt, got)
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
		w := &world{name: "headrace", args: strings.Fields(tt.args)}
		if got := w.resumeLine(tt.toStdout); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.args, got, tt.want)
		}
	}
	w := &world{name: "go run ./cmd/headrace", args: []string{"run", "a b"}}
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

// The live line never reaches the last column, and tells the most telling first.
func TestLiveLineFits(t *testing.T) {
	p := picture{
		elapsed: time.Minute, done: 84, total: 240, perSecond: 9.81, left: 16 * time.Second, failed: 2,
		inFlight: 16, waiting: 140, lanes: 1, ofLanes: 1, phase: machine.Cooling, wait: 1200 * time.Millisecond,
	}
	for width := range 120 {
		if got := fit(p.words(), width); len([]rune(got)) > width {
			t.Errorf("%d columns: %q", width, got)
		}
	}
	if got := fit(p.words(), 19); got != "84/240  35%  9.8/s" {
		t.Errorf("20 columns: %q", got)
	}
	if got := fit(p.words(), 200); got != "84/240  35%  9.8/s  ~16.0 s left  2 failed  cooling 1.2 s  16 in flight  140 waiting" {
		t.Errorf("wide: %q", got)
	}
}

// A terminal that takes nothing holds nothing up: what has no room is left out,
// and it is said how much.
func TestSlowTerminal(t *testing.T) {
	r, w := io.Pipe() // a write waits until it is read
	c := newConsole(&plain{out: w, meter: meter{scale: scale{failed: func() int64 { return 0 }}}})
	const told = 10 * consoleRoom
	for i := range told {
		c.notice(fmt.Sprint(i)) // would never return, if it waited
	}
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		text <- string(all)
	}()
	c.close(&report{})
	_ = w.Close()
	got := <-text
	shown := strings.Count(got, "\n") - strings.Count((&report{}).text(), "\n") - 1
	if !strings.Contains(got, fmt.Sprintf("%d lines were left out", told-shown)) {
		t.Errorf("%d of %d lines shown, then %q", shown, told, got[max(0, len(got)-900):])
	}
}

// Lines that happen are written above the live one, which is drawn again.
func TestLiveLineStaysBelow(t *testing.T) {
	var out strings.Builder
	l := newLive(&out, func() int { return 20 })
	l.scale(scale{total: 10, failed: func() int64 { return 0 }})
	l.status(batch.Status{At: time.Time{}.Add(time.Second), Totals: batch.Counters{Settled: 4}})
	l.notice("hello")
	l.summary(&report{})
	want := eraseLine + "4/10  40%  4.0/s" + eraseLine + "headrace: hello\n" + "4/10  40%  4.0/s" + eraseLine
	if got, _, _ := strings.Cut(out.String(), "\nsummary"); got+"" != want && got != want+"\n" {
		t.Errorf("%q, want %q", got, want)
	}
}

// The rate is that of the last seconds, not of the whole run.
func TestMeterForgets(t *testing.T) {
	m := meter{scale: scale{total: 1000, before: 100, failed: func() int64 { return 3 }}}
	var p picture
	for s := 1; s <= 60; s++ {
		done := uint64(min(s, 40)) * 10 // ten a second, and nothing more after 40 s
		p = m.read(batch.Status{At: time.Time{}.Add(time.Duration(s) * time.Second), Totals: batch.Counters{Settled: done}})
		if s == 30 && (math.Abs(p.perSecond-10) > 0.01 || p.left != 60*time.Second || p.done != 400 || p.failed != 3) {
			t.Errorf("after 30 s: %+v", p)
		}
	}
	if p.perSecond != 0 || p.left != 0 {
		t.Errorf("20 s after the last item: %+v", p)
	}
}

// Each step of a lane is told in plain words.
func TestStory(t *testing.T) {
	at := time.Time{}.Add(time.Hour)
	in := func(d time.Duration) time.Time { return at.Add(d) }
	tests := map[string]batch.Transition{
		"l: rate limit hit: cooling for 2.0 s (epoch 3)":                                              {To: machine.Cooling, Reason: machine.ByThrottle, Until: in(2 * time.Second), Epoch: 3},
		"l: calls break, the provider seems to be down (EOF): cooling for 4.0 s (epoch 0)":            {To: machine.Cooling, Reason: machine.ByBreaker, Until: in(4 * time.Second), Cause: io.EOF},
		"l: calls break, the provider seems to be down: cooling for 4.0 s (epoch 0)":                  {To: machine.Cooling, Reason: machine.ByBreaker, Until: in(4 * time.Second)},
		"l: the provider is overloaded: cooling for 500 ms (epoch 0)":                                 {To: machine.Cooling, Reason: machine.ByOverload, Until: in(500 * time.Millisecond)},
		"l: cooled; 47 calls met that wave: sending one probe":                                        {To: machine.Probing, Wave: 47},
		"l: the probe passed: ramping up to 10.0/s over 10.0 s":                                       {To: machine.Ramping, Reason: machine.ByProbe, Rate: 10, Until: in(10 * time.Second)},
		"l: cooled; 1 call met that wave; the limit is known, no probe needed: ramping up over 3 min": {To: machine.Ramping, Reason: machine.ByKnowledge, Wave: 1, Rate: math.Inf(1), Until: in(3 * time.Minute)},
		"l: the ramp is over: flowing at up to 250/s":                                                 {From: machine.Ramping, To: machine.Flowing, Reason: machine.ByTime, Rate: 250},
		"l: cooled: flowing at up to 250/s":                                                           {From: machine.Cooling, To: machine.Flowing, Reason: machine.ByKnowledge, Rate: 250},
		"l: slowed down to half: 34 % of its calls broke in the last minute":                          {Reason: machine.ByErrors, Slowed: 0.5, Errors: 0.34, Span: time.Minute},
		"l: slowed down to 25 %: 51 % of its calls broke in the last 30.0 s":                          {Reason: machine.ByErrors, Slowed: 0.25, Errors: 0.512, Span: 30 * time.Second},
		"l: as fast as before again: 3 % of its calls broke in the last minute":                       {Reason: machine.ByAnswers, Errors: 0.03, Span: time.Minute},
		"l: stopped: the provider serves it no more":                                                  {To: machine.Stopped},
	}
	for want, tr := range tests {
		tr.At, tr.Lane = at, "l"
		if got := story(tr); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		tr.Belief = "no more than 8 in flight"
		if got := story(tr); got != want+" — no more than 8 in flight" {
			t.Errorf("with a belief: %s", got)
		}
	}
}

// A picture of a run with one lane says what is believed of it, in lines for people and
// in JSON; of several lanes only the latter does.
func TestBeliefIsShown(t *testing.T) {
	l := machine.LaneStatus{Name: "l", View: limiter.View{Cap: 8}}
	began := time.Time{}.Add(time.Hour)
	of := scale{began: began, total: 10, failed: func() int64 { return 0 }}
	for lanes, want := range map[int]string{1: "(no more than 8 in flight)", 2: "0 waiting"} {
		var out strings.Builder
		p := &plain{out: &out, meter: meter{scale: of}}
		s := batch.Status{At: began, Known: lanes, Lanes: []machine.LaneStatus{l, l}[:lanes]}
		if p.status(s); !strings.HasSuffix(out.String(), want+"\n") {
			t.Errorf("%d lanes: %s", lanes, out.String())
		}
		out.Reset()
		e := &events{out: &out, meter: meter{scale: of}}
		e.status(s)
		e.transition(batch.Transition{At: began, Belief: "600 a minute"})
		if strings.Count(out.String(), `"belief":"no more than 8 in flight"`) != lanes || !strings.Contains(out.String(), `"belief":"600 a minute"`) {
			t.Errorf("%d lanes: %s", lanes, out.String())
		}
	}
}

// That a lane is slowed down because its calls break stands in the line of progress, and
// in JSON with the share that broke; so does the step.
func TestSlowedIsShown(t *testing.T) {
	slow := machine.LaneStatus{Name: "l", Slowed: 0.5, Errors: 0.34}
	began := time.Time{}.Add(time.Hour)
	of := scale{began: began, total: 10, failed: func() int64 { return 0 }}
	for want, lanes := range map[string][]machine.LaneStatus{
		"34 % of calls break: slowed down":       {slow},
		"calls break: 1 of 2 models slowed down": {slow, {Name: "m"}},
		"  0 in flight  0 waiting":               {{Name: "m", Errors: 0.3}},
	} {
		var out strings.Builder
		p := &plain{out: &out, meter: meter{scale: of}}
		if p.status(batch.Status{At: began, Known: len(lanes), Lanes: lanes}); !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
	var out strings.Builder
	e := &events{out: &out, meter: meter{scale: of}}
	e.status(batch.Status{At: began, Known: 1, Lanes: []machine.LaneStatus{slow}})
	e.transition(batch.Transition{At: began, Reason: machine.ByErrors, Slowed: 0.5, Errors: 0.34, Span: time.Minute})
	e.transition(batch.Transition{At: began, Reason: machine.ByAnswers, Span: time.Minute})
	for _, want := range []string{`"error_rate":0.34,"slowed":0.5`, `"reason":"calls break"`, `"slowed":0.5,"error_rate":0.34`, `"reason":"calls are answered"`, `"error_rate":0}`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
}

// The proof says so when it does not hold.
func TestProof(t *testing.T) {
	s := report{Summary: batch.Summary{Succeeded: 240, Counters: batch.Counters{Offered: 240, Settled: 240, Calls: 287, HandedOver: 47}}}
	if got := s.proof(); got != "  offered 240 = settled 240 + released 0  ✓\n  calls 287 = settled 240 + handed over 47  ✓\n" {
		t.Error(got)
	}
	s.Counters.HandedOver, s.Succeeded = 46, 239
	if got := strings.Count(s.proof(), "DOES NOT HOLD"); got != 2 {
		t.Error(s.proof())
	}
}

// A run that the provider stopped has its exit code, whatever the cause: calls were made.
func TestExitCodes(t *testing.T) {
	for kind, want := range map[provider.Kind]int{
		provider.QuotaExhausted: 3, provider.Unauthorized: 3, provider.ModelNotFound: 3, provider.Misconfigured: 3,
	} {
		r := &runner{world: &world{}, flags: &runFlags{}, backend: &backend{}}
		cause := fmt.Errorf("%w: %w", batch.ErrNotRun, &provider.Error{Kind: kind})
		var end *ending
		if err := r.stoppedBy(&promptfile.Sums{Stopped: cause}); !errors.As(err, &end) || end.code != want {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// A wait that is too long stops a run too, and its reason is told.
func TestStoppedByALongWait(t *testing.T) {
	r := &runner{world: &world{}, flags: &runFlags{}, backend: &backend{}}
	at := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	refusal := &provider.Error{Kind: provider.Throttled, Status: 429, Message: "come back later"}
	for wait, want := range map[time.Duration]string{
		3 * time.Hour:  "stopped: the provider asks to wait for 3.0 h, until 15:00:00 (throttled: 429: come back later); at most 15 min is waited\n",
		20 * time.Hour: "stopped: the provider asks to wait for 20.0 h, until 2026-01-02 15:00:00 (throttled: 429: come back later); at most 15 min is waited\n",
	} {
		cause := fmt.Errorf("%w: %w", batch.ErrNotRun, &batch.WaitError{Lane: "openai/m", Wait: wait, Until: at, Most: machine.MaxDirected, Cause: refusal})
		var end *ending
		if err := r.stoppedBy(&promptfile.Sums{Stopped: cause}); !errors.As(err, &end) || end.code != exitStopped || !strings.HasPrefix(end.text, want) || !strings.Contains(end.text, "wait until then") {
			t.Errorf("%+v", end)
		}
	}
	refusal.Message = strings.Repeat("long-winded ", 40)
	w := &batch.WaitError{Lane: "openai/m", Wait: 3 * time.Hour, Until: at, Most: machine.MaxDirected, Cause: refusal}
	told := story(batch.Transition{Lane: "openai/m", To: machine.Stopped, Cause: w})
	if !strings.HasPrefix(told, "openai/m: stopped: the provider asks to wait for 3.0 h") || !strings.HasSuffix(told, "…); at most 15 min is waited") {
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
		r := &runner{world: &world{env: func(string) (string, bool) { return testKey, true }}, flags: &runFlags{baseURL: base, keyEnv: defaultKeyEnv, keyEnvGiven: true, concurrency: 1}}
		b, err := r.connect()
		if err != nil || len(b.notice) != want {
			t.Errorf("%s: %+v, %v", base, b, err)
		}
	}
}
