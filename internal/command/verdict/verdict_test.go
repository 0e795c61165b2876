package verdict

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// A run that the provider stopped has its exit code, whatever the cause: calls were made.
func TestExitCodes(t *testing.T) {
	for kind, want := range map[provider.Kind]int{
		provider.QuotaExhausted: 3, provider.Unauthorized: 3, provider.ModelNotFound: 3, provider.Misconfigured: 3,
	} {
		r := &Verdict{Facts: factsWith(t, nil, "--provider", "sim")}
		cause := fmt.Errorf("%w: %w", batch.ErrNotRun, &provider.Error{Kind: kind})
		var end *exit.Ending
		if err := r.stoppedBy(&promptfile.Sums{Stopped: cause}); !errors.As(err, &end) || end.Code != want {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// A wait that is too long stops a run too, and the ending gives its reason.
func TestStoppedByALongWait(t *testing.T) {
	r := &Verdict{Facts: &Facts{World: &world.World{}, Flags: &settings.Flags{}, Account: &account.Account{}}}
	at := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	refusal := &provider.Error{Kind: provider.Throttled, Status: 429, Message: "come back later"}
	for wait, want := range map[time.Duration]string{
		3 * time.Hour:  "stopped: the provider asks to wait for 3.0 h, until 15:00:00 (throttled: 429: come back later); a run waits 15 min at most\n",
		20 * time.Hour: "stopped: the provider asks to wait for 20.0 h, until 2026-01-02 15:00:00 (throttled: 429: come back later); a run waits 15 min at most\n",
	} {
		cause := fmt.Errorf("%w: %w", batch.ErrNotRun, &batch.WaitError{Lane: "openai/m", Wait: wait, Until: at, Most: machine.MaxDirected, Cause: refusal})
		var end *exit.Ending
		if err := r.stoppedBy(&promptfile.Sums{Stopped: cause}); !errors.As(err, &end) || end.Code != exit.Stopped || !strings.HasPrefix(end.Text, want) || !strings.Contains(end.Text, "wait until then") {
			t.Errorf("%+v", end)
		}
	}
	refusal.Message = strings.Repeat("long-winded ", 40)
	w := &batch.WaitError{Lane: "openai/m", Wait: 3 * time.Hour, Until: at, Most: machine.MaxDirected, Cause: refusal}
	if cause := r.Reason(w); !errors.Is(cause, batch.ErrWaitTooLong) || !strings.HasSuffix(cause.Error(), "…); a run waits 15 min at most") {
		t.Error(cause)
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
		{promptfile.Sums{}, exit.OK},
		{promptfile.Sums{Full: full}, exit.OK},
		{promptfile.Sums{Unordered: true}, exit.Interrupted},
		{promptfile.Sums{Left: true}, exit.Interrupted},
		{promptfile.Sums{Unordered: true, Full: full}, exit.Output},
		{promptfile.Sums{RunErr: batch.ErrDrained, Full: full}, exit.Output},
		{promptfile.Sums{Left: true, Full: full}, exit.Output},
	} {
		signals := make(chan os.Signal, 1)
		signals <- os.Interrupt
		w := &world.World{Name: "headrace", Clock: clockwork.NewRealClock(), Signals: signals}
		h := w.Watch(t.Context(), 0, func(event.Code, string) {})
		<-h.Drain
		r := &Verdict{Facts: &Facts{World: w, Flags: &settings.Flags{Output: "out.jsonl"}, Halt: h}}
		var end *exit.Ending
		if err := r.Of(&tt.sums); errors.As(err, &end) && end.Code != tt.want || err == nil && tt.want != exit.OK {
			t.Errorf("%+v: %v, want code %d", tt.sums, err, tt.want)
		}
		h.Close()
	}
}

// Lines that were skipped make the run one that has not all its results, whatever they were
// skipped for.
func TestSkippedLinesAreAnExitCode(t *testing.T) {
	for text, s := range map[string]promptfile.Sums{
		"1 untranslatable line skipped: see ":                                              {Untranslatable: 1},
		"2 bad lines and 3 untranslatable lines skipped: see ":                             {Skipped: 2, Untranslatable: 3},
		"1 item failed for good: see results.errors.jsonl; 3 untranslatable lines skipped": {Summary: batch.Summary{Failed: 1}, Untranslatable: 3},
	} {
		r := &Verdict{Facts: &Facts{World: &world.World{}, Flags: &settings.Flags{Errors: "results.errors.jsonl"}, Account: &account.Account{}}}
		var end *exit.Ending
		if err := r.itemsFailed(&s); !errors.As(err, &end) || end.Code != exit.ItemsFailed || !strings.HasPrefix(end.Text, text) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// Neither reported failures nor the settings of a run contain the key, no matter where a
// server puts it.
func TestEventsHaveNoKey(t *testing.T) {
	const key = "sk-proj-0123456789abcdefTHEKEY"
	r := factsWith(t, map[string]string{"OPENAI_API_KEY": key})
	kind, code := r.FailureCode(&provider.Error{Kind: provider.Invalid, Status: 400, Code: "bad_" + key})
	if kind != "invalid" || code != "bad_[redacted]" {
		t.Errorf("%s, %s", kind, code)
	}
	if kind, code := r.FailureCode(&provider.Error{Kind: provider.Server, Status: 502}); kind != "server" || code != "502" {
		t.Errorf("%s, %s", kind, code)
	}
	for err, want := range map[error]string{&batch.PanicError{Value: 1}: "panic", errors.New("no"): "unknown"} {
		if kind, code := r.FailureCode(err); kind != want || code != "" {
			t.Errorf("%v: %s, %s", err, kind, code)
		}
	}
	f, fs := &settings.Flags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(fs)
	must.Do(t, fs.Parse([]string{"-o", "out-" + key, "--system", "a part of a prompt", "--template", "{{.x}}", "--cluster=nats://a-token@bus"}))
	env := map[string]string{"HEADRACE_RPM": "60"}
	must.Do(t, f.Complete(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok }))
	text, err := json.Marshal(f.Given)
	want := `[{"name":"output","value":"out-[redacted]","from":"flag"},{"name":"template","value":null,"from":"flag"},` +
		`{"name":"system","value":null,"from":"flag"},{"name":"rpm","value":"60","from":"environment"},{"name":"cluster","value":null,"from":"flag"}]`
	if err != nil || string(text) != want {
		t.Errorf("%v: %s, want %s", err, text, want)
	}
}

// factsWith are those of a run with these flags, which is connected.
func factsWith(t *testing.T, env map[string]string, args ...string) *Facts {
	t.Helper()
	f, fs := &settings.Flags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(fs)
	must.Do(t, fs.Parse(append([]string{"-o", "x"}, args...)))
	w := &world.World{Name: "headrace", Clock: clockwork.NewRealClock(), Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
	must.Do(t, f.Complete(fs, w.Env))
	b := must.Get(account.Connect(t.Context(), w, f))(t)
	return &Facts{World: w, Flags: f, Account: b}
}

// The advice for a provider that no longer serves a run names what its address is made of.
func TestAdviceNamesTheAddress(t *testing.T) {
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
		v := &Verdict{Facts: factsWith(t, map[string]string{"MINE": "sk-proj-0123456789abcdefTHEKEY"}, append([]string{"--api-key-env", "MINE"}, strings.Fields(c.args)...)...)}
		if got := v.adviceFor(&provider.Error{Kind: c.kind}); got != c.want {
			t.Errorf("%s: %q", c.args, got)
		}
	}
	if got := ReasonOf(&provider.Error{Provider: "azure", Kind: provider.Unauthorized, Status: 401, Code: "401"}); got != "azure refuses the key: 401" {
		t.Error(got)
	}
}
