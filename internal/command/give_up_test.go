package command

import (
	"context"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
)

// A value of --max-failures that cannot be is refused before any call, with a word about what
// can.
func TestAFailureBoundThatCannotBe(t *testing.T) {
	for given, allowed := range map[string]string{
		"-1": "number of items, such as 20", "x": "number of items, such as 20",
		"0%": "more than 0% and less than 100%", "101%": "more than 0% and less than 100%",
	} {
		var out strings.Builder
		code := Run(t.Context(), aWorld(&out, nil, "run", "in.jsonl", "-o", "o.jsonl", "--provider", "sim", "--max-failures="+given))
		for _, want := range []string{"--max-failures", `"` + given + `"`, allowed} {
			if code != exit.Usage || !strings.Contains(out.String(), want) {
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
		code := Run(t.Context(), aWorld(&out, one.env, args...), Extra{Cluster: joined(t)})
		if want := "headrace: " + one.names + ": only for runs on one machine, as a cluster decides by itself when to stop: remove them\n"; code != exit.Usage || out.String() != want {
			t.Errorf("%s %v: exit code %d: %s", one.args, one.env, code, out.String())
		}
	}
}

// joined is a cluster that must not be asked.
func joined(t *testing.T) func(context.Context, *run.Settings, string) error {
	return func(context.Context, *run.Settings, string) error {
		t.Error("the cluster was asked")
		return nil
	}
}
