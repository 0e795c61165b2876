package command

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// --max-failures takes a number of items, 0 for no bound, or a share of them. It shows a bound
// as it was given and hands it to the run. Anything else leaves the bound as it was.
func TestFailureBound(t *testing.T) {
	for given, want := range map[string]struct{ shown, options string }{
		"0":     {"0", "[]"},
		"1":     {"1", "[WithMaxFailures(1)]"},
		"7":     {"7", "[WithMaxFailures(7)]"},
		" 20 ":  {"20", "[WithMaxFailures(20)]"},
		"5%":    {"5%", "[WithMaxFailureShare(0.05)]"},
		"0.5%":  {"0.5%", "[WithMaxFailureShare(0.005)]"},
		"7%":    {"7%", "[WithMaxFailureShare(0.07)]"},
		"14 %":  {"14%", "[WithMaxFailureShare(0.14)]"},
		"12.5%": {"12.5%", "[WithMaxFailureShare(0.125)]"},
	} {
		var b failureBound
		if err := b.Set(given); err != nil {
			t.Errorf("%q: %v", given, err)
			continue
		}
		if got := fmt.Sprint(b.options()); b.String() != want.shown || got != want.options {
			t.Errorf("%q is shown as %s and gives %s, want %s and %s", given, b.String(), got, want.shown, want.options)
		}
	}
	for given, why := range map[string]string{
		"-1": "number", "x": "number", "": "number", "1e3": "number", "2.5": "number", "7 items": "number", "99999999999999999999": "number",
		"0%": "share", "100%": "share", "101%": "share", "-5%": "share", "%": "share", "x%": "share", "NaN%": "share", "Inf%": "share", "5%%": "share",
	} {
		b := failureBound{items: 3}
		if err := b.Set(given); err == nil || !strings.Contains(err.Error(), why) || b != (failureBound{items: 3}) {
			t.Errorf("%q: %v, want a complaint about a %s; the bound is %+v", given, err, why, b)
		}
	}
}

// A value of --max-failures that cannot be is refused before any call, with a word about what
// can.
func TestAFailureBoundThatCannotBe(t *testing.T) {
	for given, allowed := range map[string]string{
		"-1": "number of items, such as 20", "x": "number of items, such as 20",
		"0%": "more than 0% and less than 100%", "101%": "more than 0% and less than 100%",
	} {
		var out strings.Builder
		code := run(t.Context(), aWorld(&out, nil, nil, "run", "in.jsonl", "-o", "o.jsonl", "--provider", "sim", "--max-failures="+given))
		for _, want := range []string{"--max-failures", `"` + given + `"`, allowed} {
			if code != ExitUsage || !strings.Contains(out.String(), want) {
				t.Errorf("--max-failures %s: exit code %d, no %q in: %s", given, code, want, out.String())
			}
		}
	}
}

// A cluster has none of the bounds of a run on one machine: the command names those that were
// given, wherever, and calls nobody.
func TestBoundsOfOneMachineAreNotForClusters(t *testing.T) {
	for _, one := range []struct {
		args  string
		env   map[string]string
		names string
	}{
		{args: "--keep-going", names: "--keep-going"},
		{args: "--cluster --max-failures 3", names: "--max-failures"}, // a trial in this process: a job elsewhere has that bound
		{args: "--cluster --max-failures 5%", names: "--max-failures"},
		{args: "--outage-patience 5m", names: "--outage-patience"},
		{args: "--first-answer 1m", names: "--first-answer"},
		{args: "--keep-going --outage-patience 5m", names: "--outage-patience and --keep-going"},
		{env: map[string]string{"HEADRACE_KEEP_GOING": "true"}, names: "--keep-going"},
	} {
		var out strings.Builder
		args := append([]string{"run", "in.jsonl", "-o", "o.jsonl", "--provider", "sim", "--cluster=nats://bus:4222"}, strings.Fields(one.args)...)
		code := run(t.Context(), aWorld(&out, one.env, []Extra{{Cluster: joined(t)}}, args...))
		if want := "headrace: " + one.names + ": only for runs on one machine, as a cluster decides by itself when to stop: remove them\n"; code != ExitUsage || out.String() != want {
			t.Errorf("%s %v: exit code %d: %s", one.args, one.env, code, out.String())
		}
	}
}

// joined is a cluster that must not be asked.
func joined(t *testing.T) func(context.Context, *Settings, string) error {
	return func(context.Context, *Settings, string) error {
		t.Error("the cluster was asked")
		return nil
	}
}
