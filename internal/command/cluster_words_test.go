package command

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
)

// The line to join by has a token in it. Nothing that a command says repeats it: not the line that resumes, not a
// complaint about what was typed.
func TestTheLineToJoinByIsNotRepeated(t *testing.T) {
	const line = "nats://SECRETTOKEN@10.0.0.1:4222?ca=sha256:00&home=s3%3A%2F%2Fb"
	extras := []Extra{{Heading: "Many machines", Commands: askOne, Cluster: func(_ context.Context, s *run.Settings, _ string) error {
		if s.Flags.Cluster != line {
			t.Errorf("the cluster is %q", s.Flags.Cluster)
		}
		return errors.Join(s.Verdict.Of(&promptfile.Sums{InputErr: errors.New("it broke at " + line)}))
	}}}
	for _, one := range []struct {
		args string
		env  map[string]string
		says string
	}{
		{"run in.jsonl -o o.jsonl --provider sim --cluster=" + line, nil, `--cluster="${HEADRACE_CLUSTER:?set it to the line to join by}"`},
		{"run in.jsonl -o o.jsonl --provider sim", map[string]string{"HEADRACE_CLUSTER": line}, "headrace run in.jsonl -o o.jsonl --provider sim\n"},
		{"run in.jsonl -o o.jsonl --provider sim --cluster " + line, nil, "is one of them the address of --cluster?"},
		{"run " + line + " in.jsonl -o o.jsonl --provider sim", nil, "nats://[redacted]@10.0.0.1"},
		{"run in.jsonl -o o.jsonl --provider sim --progress " + line, nil, "--progress"},
		{"run in.jsonl -o o.jsonl --provider sim --rpm " + line, nil, "its value is not a number"},
		{line, nil, "unknown command"},
		{"help " + line, nil, "unknown command"},
	} {
		var out strings.Builder
		Run(t.Context(), aWorld(&out, one.env, strings.Fields(one.args)...), extras...)
		if strings.Contains(out.String(), "SECRET") {
			t.Errorf("%s: the token is said:\n%s", one.args, out.String())
		}
		if !strings.Contains(out.String(), one.says) {
			t.Errorf("%s: no %q in\n%s", one.args, one.says, out.String())
		}
	}
}

// An address that is empty is no cluster, and not this machine either.
func TestAnEmptyClusterIsRefused(t *testing.T) {
	var out strings.Builder
	code := Run(t.Context(), aWorld(&out, nil, "run", "in.jsonl", "-o", "o.jsonl", "--provider", "sim", "--cluster="), Extra{})
	if code != exit.Usage || !strings.Contains(out.String(), "--cluster= has no address") {
		t.Errorf("%d\n%s", code, out.String())
	}
}
