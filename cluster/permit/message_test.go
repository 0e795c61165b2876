package permit

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file anew")

// outcomes are ends of calls of every kind, with everything in them that can be.
func outcomes() []machine.Outcome {
	fault := &provider.Error{Kind: provider.QuotaExhausted, Provider: "openai", Status: 429, Code: "insufficient_quota", Message: "no credit"}
	all := []machine.Outcome{{
		Signal: machine.Succeeded, Latency: 1234567 * time.Microsecond, Measured: true, Actual: limiter.Cost{Requests: 1, Input: 812, Output: 97}, Cached: 128,
		Sightings: []limiter.Sighting{
			{Dimension: limiter.Requests, Limit: 30000, Window: time.Minute, Remaining: 29998},
			{Dimension: limiter.Tokens, Limit: 3e7, Remaining: 2.5e6, Reset: 50 * time.Millisecond, HasReset: true},
			{Dimension: limiter.OutputTokens, Limit: 8000, Said: true},
		},
	}, {
		Signal: machine.Throttled, Latency: time.Millisecond, Directed: true, RetryAfter: 3 * time.Second, Unclear: true, Slow: true, On: limiter.InputTokens,
	}, {
		Signal: machine.Exhausted, Alike: 1 << 31, First: 3, Later: 5, Again: true, Cause: fault,
	}, {
		Signal: machine.Failed, Timeout: true, Way: uint8(provider.Timeout), Unsent: true, Cause: errors.New("dial: refused"),
	}}
	for s := machine.Nothing; s <= machine.Exhausted; s++ {
		all = append(all, machine.Outcome{Signal: s, On: limiter.Dimension(uint8(s) % 5)})
	}
	return all
}

// A worker of before this version says of a model that is not found that it matters only to a
// limit that was never answered; a keeper of before reads that of any refusal that may be its
// item's.
func TestOutcomesOfEarlierVersions(t *testing.T) {
	var heard Outcome
	pass(t, map[string]any{"s": "exhausted", "first": true}, &heard)
	o, err := heard.Machine()
	if err != nil || o.Alike == 0 || o.First != 1 || o.Later != 0 {
		t.Errorf("%+v, %v", o, err)
	}
	for signal, want := range map[machine.Signal]bool{machine.Exhausted: true, machine.Answered: false} {
		if said := OutcomeOf(machine.Outcome{Signal: signal, Alike: 7, First: 20}); said.OnlyIfFirst != want {
			t.Errorf("%v: %+v", signal, said)
		}
	}
}

// What an outcome teaches is the same after the bus; of its cause the text and the kinds are.
func TestOutcomesRoundTrip(t *testing.T) {
	for _, o := range outcomes() {
		var heard Outcome
		pass(t, OutcomeOf(o), &heard)
		got, err := heard.Machine()
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if (o.Cause == nil) != (got.Cause == nil) || o.Cause != nil && o.Cause.Error() != got.Cause.Error() {
			t.Errorf("cause %v is %v", o.Cause, got.Cause)
		}
		o.Cause, got.Cause = nil, nil
		if !reflect.DeepEqual(o, got) {
			t.Errorf("%+v\nis\n%+v", o, got)
		}
	}
}

// pass sends something over a bus.
func pass(t *testing.T, from, to any) {
	t.Helper()
	b, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What goes over the bus is in whole units: never less than what it stands for.
func TestCostsAreRoundedUp(t *testing.T) {
	for _, c := range []limiter.Cost{{Requests: 1, Input: 0.1, Output: 7.9}, {Requests: 2.5}, {Requests: 1, Input: 812}, {}} {
		got := CostOf(c).Limiter()
		if got.Requests < max(1, c.Requests) || got.Input < c.Input || got.Output < c.Output || got.Input-c.Input >= 1 || got.Output-c.Output >= 1 {
			t.Errorf("%v is %v", c, got)
		}
	}
}

// Each signal and dimension of the core has a word: one that is added must be given one.
func TestEveryNumberHasAWord(t *testing.T) {
	seen := map[string]bool{}
	for s := machine.Nothing; s <= machine.Exhausted; s++ {
		if w := wordOf(signals, s); seen[w] {
			t.Errorf("signal %v has the word %q of another", s, w)
		} else {
			seen[w] = true
		}
	}
	if s := machine.Exhausted + 2; fmt.Sprint(panics(func() { _ = s.String() })) == "<nil>" {
		t.Errorf("the core has a signal %v, which has no word", s)
	}
	for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
		if wordOf(dimensions, d) == "" {
			t.Errorf("dimension %v has no word", d)
		}
	}
	if d := limiter.OutputTokens + 1; !strings.HasPrefix(d.String(), "dimension(") {
		t.Errorf("the core has a dimension %v, which has no word", d)
	}
}

func panics(do func()) (what any) {
	defer func() { what = recover() }()
	do()
	return nil
}

// The kind of a stopped limit's cause is the same on every machine.
func TestCausesKeepTheirKinds(t *testing.T) {
	fault := &provider.Error{Kind: provider.Unauthorized, Status: 401, Code: "invalid_api_key", Message: "wrong key"}
	for _, c := range []struct {
		err   error
		kinds []error
	}{
		{fault, []error{provider.Unauthorized}},
		{fmt.Errorf("stopped: %w", provider.QuotaExhausted), []error{provider.QuotaExhausted}},
		{&machine.WaitError{Lane: "org", Wait: time.Hour, Cause: fault}, []error{machine.ErrWaitTooLong, provider.Unauthorized}},
		{fmt.Errorf("%w: 9 calls", machine.ErrNoAnswer), []error{machine.ErrNoAnswer}},
		{&machine.OutageError{Lane: "org", For: time.Hour, Cause: fault}, []error{machine.ErrOutage, provider.Unauthorized}},
		{errors.New("plain"), nil},
	} {
		var heard Cause
		pass(t, CauseOf(c.err), &heard)
		if heard.Error() != c.err.Error() {
			t.Errorf("%q is %q", c.err, &heard)
		}
		for _, kind := range []error{provider.Unauthorized, provider.QuotaExhausted, provider.Throttled, machine.ErrWaitTooLong, machine.ErrNoAnswer, machine.ErrOutage} {
			want := slices.ContainsFunc(c.kinds, func(k error) bool { return errors.Is(k, kind) })
			if got := errors.Is(&heard, kind); got != want {
				t.Errorf("%q: is %v: %v, want %v", c.err, kind, got, want)
			}
		}
	}
	var heard Cause
	pass(t, CauseOf(fault), &heard)
	var found *provider.Error
	if !errors.As(&heard, &found) || found.Kind != provider.Unauthorized || found.Status != 401 || found.Code != "invalid_api_key" {
		t.Errorf("the provider's error is %+v", found)
	}
	if again := CauseOf(&heard); *again != heard {
		t.Errorf("what came over the bus goes over it as %+v", again)
	}
}

func TestCausesAreShort(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 5000), strings.Repeat("é", 5000), strings.Repeat("x", MaxCause-1) + "é"} {
		c := CauseOf(errors.New(text))
		if len(c.Text) > MaxCause || len(c.Text) < MaxCause-3 || !strings.HasPrefix(text, c.Text) {
			t.Errorf("of %d bytes %d are left: …%q", len(text), len(c.Text), c.Text[len(c.Text)-4:])
		}
	}
	if CauseOf(nil) != nil {
		t.Error("no cause is one")
	}
}

// examples are messages with everything in them, and with hardly anything.
func examples() map[string]any {
	var reports []Report
	for i, o := range outcomes()[:4] {
		reports = append(reports, Report{Epoch: 3, Number: Number(40 + i), Cost: Cost{Input: 800, Output: 200}, Age: time.Second, Ended: OutcomeOf(o)})
	}
	reports = append(reports, Report{Epoch: 3, Number: 44, Cost: Cost{Input: 800}, Age: time.Millisecond}, Report{Epoch: 2, Number: 9, Unused: true})
	head := Ask{Version: Version, Worker: "host-1.7f3a", Job: "nightly", Limit: "org-main", Seq: 17, Epoch: 3}
	full := head
	full.Got, full.Wants, full.More, full.First, full.Reports = 61, []Cost{{Input: 900, Output: 100}, {Requests: 2, Input: 1}}, 12, 301, reports
	return map[string]any{
		"ask": full, "ask of a worker that is busy": head,
		"give": Give{
			Version: Version, Worker: "host-1.7f3a", Job: "nightly", Limit: "org-main", Epoch: 3, Wave: 2, Heard: 17, Answered: true,
			Permits: []Permit{{Number: 62, Cost: Cost{Input: 900, Output: 100}}, {Number: 63, Cost: Cost{Requests: 2, Input: 1}, Probe: true}},
		},
		"give that only says what was heard": Give{Version: Version, Worker: "host-1.7f3a", Job: "nightly", Limit: "org-main", Epoch: 3, Heard: 17},
		"cool":                               Cool{Version: Version, Limit: "org-main", Epoch: 3, Wave: 4, For: 1500 * time.Millisecond},
		"cool that is the end":               Cool{Version: Version, Limit: "org-main", Epoch: 3, Wave: 5, Stopped: CauseOf(outcomes()[2].Cause)},
	}
}

// The messages keep their form, as another version of the worker reads them. A change must
// raise Version, and say how the older version is answered.
func TestMessagesAreWhatTheyWere(t *testing.T) {
	got := must.Get(json.MarshalIndent(examples(), "", " "))(t)
	path := filepath.Join("testdata", "messages.json")
	if *rewrite {
		must.Do(t, os.WriteFile(path, append(got, '\n'), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	if string(got)+"\n" != string(want) {
		t.Errorf("the messages are not those of %s: go test ./permit -rewrite, and look at the difference\n%s", path, got)
	}
}

// Each example is valid, and the same after the bus.
func TestExamplesRoundTrip(t *testing.T) {
	for name, x := range examples() {
		var err error
		switch m := x.(type) {
		case Ask:
			var heard Ask
			pass(t, m, &heard)
			same(t, name, m, heard)
			err = heard.Validate()
		case Give:
			var heard Give
			pass(t, m, &heard)
			same(t, name, m, heard)
			err = heard.Validate()
		case Cool:
			var heard Cool
			pass(t, m, &heard)
			same(t, name, m, heard)
			err = heard.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func same(t *testing.T, name string, a, b any) {
	t.Helper()
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s:\n%+v\nis\n%+v", name, a, b)
	}
}

// A permit takes some two hundred bytes of bus in all: to be asked for and given, and to be
// reported once when its call has left, and once when that has ended.
func TestMessagesAreShort(t *testing.T) {
	cost := Cost{Input: 1034, Output: 512}
	o := OutcomeOf(machine.Outcome{Signal: machine.Succeeded, Latency: 2034567891, Measured: true, Actual: limiter.Cost{Requests: 1, Input: 1034, Output: 411}})
	total := 0
	for _, part := range []any{
		cost,
		Permit{Number: 123456, Cost: cost},
		Report{Epoch: 12, Number: 123456, Cost: cost, Age: 99_123_456},
		Report{Epoch: 12, Number: 123456, Cost: cost, Age: 2134567891, Ended: o},
	} {
		b := must.Get(json.Marshal(part))(t)
		total += len(b) + 1
	}
	if total > 300 {
		t.Errorf("a permit takes %d bytes", total)
	}
}

// What no worker says is refused by name, and by nothing worse.
func TestValidateRefuses(t *testing.T) {
	ask := func(change func(*Ask)) error {
		a := examples()["ask"].(Ask)
		a.Reports = append([]Report(nil), a.Reports...)
		change(&a)
		return a.Validate()
	}
	for name, err := range map[string]error{
		"version":  ask(func(a *Ask) { a.Version++ }),
		"worker":   ask(func(a *Ask) { a.Worker = "" }),
		"job":      ask(func(a *Ask) { a.Job = strings.Repeat("x", MaxName+1) }),
		"seq":      ask(func(a *Ask) { a.Seq = 0 }),
		"wants":    ask(func(a *Ask) { a.Wants = make([]Cost, MaxWants+1) }),
		"more":     ask(func(a *Ask) { a.More = -1 }),
		"cost":     ask(func(a *Ask) { a.Wants = []Cost{{Input: -1}} }),
		"dear":     ask(func(a *Ask) { a.Wants = []Cost{{Input: 1e13}} }),
		"first":    ask(func(a *Ask) { a.First = 0 }),
		"reports":  ask(func(a *Ask) { a.Reports = make([]Report, MaxReports+1) }),
		"number":   ask(func(a *Ask) { a.Reports[0].Number = 0 }),
		"age":      ask(func(a *Ask) { a.Reports[0].Age = -1 }),
		"both":     ask(func(a *Ask) { a.Reports[0].Unused = true }),
		"signal":   ask(func(a *Ask) { a.Reports[0].Ended = &Outcome{Signal: "hm"} }),
		"sighting": ask(func(a *Ask) { a.Reports[0].Ended = &Outcome{Sightings: make([]Sighting, MaxSightings+1)} }),
		"on":       ask(func(a *Ask) { a.Reports[0].Ended = &Outcome{Sightings: []Sighting{{On: ""}}} }),
		"actual":   ask(func(a *Ask) { a.Reports[0].Ended = &Outcome{Actual: &Cost{Output: -1}} }),
		"epoch":    (&Give{Version: Version, Worker: "w", Job: "j", Limit: "l"}).Validate(),
		"permits":  (&Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Permits: []Permit{{}}}).Validate(),
		"cool":     (&Cool{Version: Version, Limit: "l"}).Validate(),
		"for":      (&Cool{Version: Version, Limit: "l", Epoch: 1, For: -1}).Validate(),
	} {
		want := ErrMessage
		if name == "version" {
			want = ErrVersion
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ask(func(*Ask) {}); err != nil {
		t.Errorf("what is right: %v", err)
	}
}

// Whatever bytes come over the bus, a message that is valid is the same when it is passed on,
// and a law that hears it goes on.
func FuzzMessages(f *testing.F) {
	for _, x := range examples() {
		b := must.Get(json.Marshal(x))(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var a Ask
		if json.Unmarshal(b, &a) == nil && a.Validate() == nil {
			var again Ask
			pass(t, a, &again)
			if err := again.Validate(); err != nil {
				t.Errorf("passed on it is %v", err)
			}
			for i, r := range a.Reports {
				if r.Ended != nil && !reflect.DeepEqual(second(r.Ended.Machine()), second(again.Reports[i].Ended.Machine())) {
					t.Errorf("%+v is %+v", r.Ended, again.Reports[i].Ended)
				}
			}
		}
		var g Give
		var c Cool
		l := New("w", "j", "l")
		if json.Unmarshal(b, &g) == nil {
			g.Worker, g.Job, g.Limit = "w", "j", "l"
			l.Hear(noon, &g)
		}
		if json.Unmarshal(b, &c) == nil {
			c.Limit = "l"
			l.Hear(noon, &c)
		}
		if a, _ := l.Say(noon, limiter.Upcoming{Waiting: 1, Free: 1, Costs: costs(1)}); a != nil {
			if err := a.(*Ask).Validate(); err != nil {
				t.Errorf("it says %v", err)
			}
		}
	})
}

func second(o machine.Outcome, _ error) machine.Outcome { return o }
