package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// settled are the flags with a file of --config that says so.
func settled(t *testing.T, text string, args ...string) *Flags {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	cmd, f := &cobra.Command{}, &Flags{}
	f.Register(cmd.Flags())
	must.Do(t, cmd.ParseFlags(append(args, "-o", "out.jsonl", "--config", path)))
	must.Do(t, f.Complete(cmd.Flags(), func(string) (string, bool) { return "", false }))
	return f
}

// Each setting reaches its own field, and what is left out has its default; of what the
// file does not speak, nothing is said.
func TestLaneSettingsReachTheLanes(t *testing.T) {
	usual := limiter.BreakerConfig{
		Window: 30 * time.Second, MinSamples: 10, Consecutive: 10, OpenFor: machine.ModelOpen, MaxOpen: machine.ModelOpen, Successes: 1,
	}
	quick, slow := usual, usual
	quick.MaxOpen, quick.OpenFor = time.Second, time.Second
	slow.OpenFor, slow.MaxOpen = time.Minute, time.Minute
	plain := usual
	plain.Window, plain.OpenFor, plain.MaxOpen = time.Minute, 4*time.Second, 20*time.Second
	for text, want := range map[string]batch.LaneConfig{
		"rpm: 600": {},
		"law: plain\nramp: {initial: 1, target: 2, duration: 3s}":                 {Ramp: limiter.RampConfig{Initial: 1, Target: 2, Duration: 3 * time.Second}},
		"law: plain\nramp: {target: 2}":                                           {Ramp: limiter.RampConfig{Initial: 5, Target: 2, Duration: 5 * time.Minute}},
		"law: plain\ncooldown: {base: 1ms, max: 2s, max-directed: 3s, jitter: 0}": {Cooldown: limiter.CooldownConfig{Base: time.Millisecond, Max: 2 * time.Second, MaxDirected: 3 * time.Second, Jitter: -1}},
		"error-window: {length: 2m, high: 0.4, low: 0.2, factor: 0.25, hold: 30s, min-calls: 7}": {Errors: limiter.ErrorWindowConfig{
			Window: 2 * time.Minute, High: 0.4, Low: 0.2, Factor: 0.25, Hold: 30 * time.Second, MinSamples: 7,
		}},
		"breaker: {window: 10s, failure-rate: 0.5, min-calls: 4, consecutive: 3, open: 1s, max-open: 2s, successes: 5}": {Breaker: limiter.BreakerConfig{
			Window: 10 * time.Second, FailureRate: 0.5, MinSamples: 4, Consecutive: 3, OpenFor: time.Second, MaxOpen: 2 * time.Second, Successes: 5,
		}},
		"breaker: {window: 30s}":             {Breaker: usual},
		"breaker: {max-open: 1s}":            {Breaker: quick},
		"breaker: {open: 1m}":                {Breaker: slow},
		"law: plain\nbreaker: {window: 60s}": {Breaker: plain},
		"law: plain\nrate: {initial: 5, min: 1, max: 9, increase: 0.1, decrease: 0.5}": {Rate: limiter.RateConfig{
			Initial: 5, Floor: 1, Ceiling: 9, Increase: 0.1, Decrease: 0.5,
		}},
		"law: plain\nrate: {max: 9}": {Rate: limiter.RateConfig{Floor: 0.05, Ceiling: 9, Increase: 0.03, Decrease: 0.7}},
		"rate: {initial: 5}":         {Rate: limiter.RateConfig{Initial: 5}},
		"law: none":                  {Law: limiter.NoLaw},
	} {
		if got := func() batch.LaneConfig { f := settled(t, text); return f.Lanes.Lane(f.Law) }(); got != want {
			t.Errorf("%s:\n%+v, want\n%+v", text, got, want)
		}
	}
	opts := fmt.Sprint(settled(t, "backoff: {base: 1s, max: 2s}\nidle-lanes: 1m\nmax-lanes: 7").Lanes.Options(lawModel))
	if want := "[WithBackoff(1s, 2s) WithMaxLanes(7) WithIdleLanes(1m0s)]"; opts != want {
		t.Errorf("%s, want %s", opts, want)
	}
}

// What the file may say of lanes, at its bounds, is nothing that a run refuses.
func TestLaneSettingsAreAllowed(t *testing.T) {
	for _, one := range newLaneSettings("").table() {
		for _, x := range []float64{one.min, one.max} {
			section, key, within := strings.Cut(one.name, ".")
			value := plainNumber(x)
			if _, is := one.target.(*time.Duration); is {
				value = words.Span(x)
			}
			text := fmt.Sprintf("law: plain\n%s: %s\n", section, value)
			if within {
				// The other of a pair of bounds gives way, so that this one is what is looked at.
				text = fmt.Sprintf("law: plain\n%s: {%s: %s%s}\n", section, key, value, partner(one.name, value))
			}
			f := settled(t, text)
			s, err := batch.NewShared(append(f.LawOptions(), f.Lanes.Options(f.Law)...)...)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			s.Close()
		}
	}
}

// partner is the other of a pair of bounds, with the same value.
func partner(name, value string) string {
	pairs := map[string]string{
		"cooldown.base": "max", "cooldown.max": "base", "error-window.low": "high", "error-window.high": "low",
		"breaker.open": "max-open", "breaker.max-open": "open", "backoff.base": "max", "backoff.max": "base", "rate.initial": "min", "rate.min": "max", "rate.max": "min",
	}
	if other := pairs[name]; other != "" {
		return ", " + other + ": " + value
	}
	return ""
}

// The help of run shows each flag once, under some heading.
func TestEachFlagHasAHeading(t *testing.T) {
	cmd := &cobra.Command{}
	new(Flags).Register(cmd.Flags())
	cmd.InitDefaultHelpFlag()
	seen := map[string]bool{}
	for _, g := range RunGroups {
		for name := range strings.FieldsSeq(g.flags) {
			if seen[name] || cmd.Flags().Lookup(name) == nil {
				t.Errorf("--%s is shown twice, or does not exist", name)
			}
			seen[name] = true
		}
	}
	for _, name := range flagNames(cmd) {
		if !seen[name] {
			t.Errorf("--%s has no heading", name)
		}
	}
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// flagsWith are those of a command line.
func flagsWith(t *testing.T, env map[string]string, args ...string) *Flags {
	t.Helper()
	f, fs := &Flags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(fs)
	must.Do(t, fs.Parse(args))
	if err := f.Complete(fs, func(name string) (string, bool) { value, ok := env[name]; return value, ok }); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return f
}
