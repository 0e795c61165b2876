package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/provider"
)

// aWorld is one with extras.
func aWorld(out io.Writer, env map[string]string, extras []Extra, args ...string) *World {
	return &World{
		name: "headrace", args: args, stdin: strings.NewReader(""), stdout: out, stderr: out, clock: clockwork.NewRealClock(),
		env:     func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		signals: make(chan os.Signal), release: func() {}, extras: extras,
	}
}

// askOne is a command of another main: it has some flags of run, and calls whom they say.
func askOne(w *World) []*cobra.Command {
	s := NewSettings(w, Whom|Keys|Pace|Says|Config)
	cmd := &cobra.Command{Use: "ask PROMPT", Short: "Ask one prompt"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.Complete(); err != nil {
			return err
		}
		calls, err := s.Connect()
		if err != nil {
			return err
		}
		defer calls.Close()
		_, _, closed, err := s.Face()
		if err != nil {
			return err
		}
		defer closed()
		job := calls.Job(promptfile.Input{})
		it := &promptfile.Item{Request: prompts.Request{Endpoint: provider.Chat, Model: "m", Body: fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":%q}]}`, args[0])}}
		_, err = batch.Run(cmd.Context(), slices.Values([]*promptfile.Item{it}), func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
			fmt.Fprintln(cmd.OutOrStdout(), "asked in", job.Lane(it.Model))
			return calls.Call(ctx, it)
		}, append(calls.Options(), batch.WithConcurrency(job.Concurrency))...)
		if err != nil {
			return End(ExitItemsFailed, "%s", job.Redact(err.Error()))
		}
		return nil
	}
	s.Register(cmd)
	cmd.Flags().String("join", "", "a flag of its own")
	return []*cobra.Command{cmd}
}

// Another main has commands of its own, under their heading, with flags as those of run.
func TestAnExtraHasCommands(t *testing.T) {
	extras := []Extra{{Heading: "Many machines", Commands: askOne}}
	for _, one := range []struct {
		args string
		env  map[string]string
		code int
		says []string
	}{
		{"ask hello --provider sim --sim-profile fast", nil, ExitOK, []string{"asked in sim/all-models\n"}},
		{"ask hello --provider sim --sim-profile fast --log-level debug --log-format json", nil, ExitOK, []string{`"level":"DEBUG","msg":"call"`}},
		{"ask hello --provider sim", map[string]string{"HEADRACE_SIM_PROFILE": "none"}, ExitUsage, []string{`headrace: --sim-profile: "none" is not known`}},
		{"ask hello --base-url ftp://x", nil, ExitUsage, []string{"must begin with http:// or https://"}},
		{"ask hello", nil, ExitUsage, []string{"headrace: OPENAI_API_KEY is not set"}},
		{"ask hello --output o", nil, ExitUsage, []string{"unknown flag: --output"}},
		{"ask --help", nil, ExitOK, []string{"\nFlags:\n      --join string", "\nProvider:\n", "\nHow fast:\n  -c, --concurrency N"}},
		{"--help", nil, ExitOK, []string{"\nMany machines:\n  ask         Ask one prompt\n", "\nAvailable Commands:\n  completion", "  help        Help", "  run         Run a"}},
		{"worker", nil, ExitUsage, []string{`unknown command "worker"`}},
	} {
		var out strings.Builder
		if code := run(t.Context(), aWorld(&out, one.env, extras, strings.Fields(one.args)...)); code != one.code {
			t.Errorf("%s: exit code %d, not %d", one.args, code, one.code)
		}
		for _, want := range one.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", one.args, want, out.String())
			}
		}
		if strings.Contains(out.String(), "\nPrices:") || strings.Contains(out.String(), "Additional Commands") {
			t.Errorf("%s: a heading of what is not there, or is elsewhere, in\n%s", one.args, out.String())
		}
	}
}

// --cluster is taken over by the first extra that can, when the flags are good, and by none
// where it is not given.
func TestAnExtraRunsOnACluster(t *testing.T) {
	var got []string
	extras := []Extra{{Commands: askOne}, {Cluster: func(_ context.Context, s *Settings, input string) error {
		calls, err := s.Connect()
		if err != nil {
			return err
		}
		defer calls.Close()
		got = []string{input, s.Cluster(), s.Output(), s.Errors(), calls.Job(promptfile.Input{}).Errors}
		return s.Verdict(&promptfile.Sums{InputErr: errors.New("it broke")})
	}}}
	for args, want := range map[string]struct {
		code int
		got  []string
	}{
		"run in.jsonl -o {}/o.jsonl --provider sim --cluster":            {ExitUsage, []string{"in.jsonl", ClusterTrial, "{}/o.jsonl", "{}/o.errors.jsonl", "{}/o.errors.jsonl"}},
		"run in.jsonl -o - --errors e --provider sim --cluster=nats://a": {ExitUsage, []string{"in.jsonl", "nats://a", "-", "e", "e"}},
		"run in.jsonl -o {}/o.jsonl --cluster --order some":              {ExitUsage, nil},
		"run a.jsonl b.jsonl -o {}/o.jsonl --provider sim --cluster=a":   {ExitUsage, nil},
		"run a.jsonl nats://a -o {}/o.jsonl --provider sim --cluster":    {ExitUsage, nil},
		"run {}/in* -o {}/o.jsonl --provider sim --cluster=nats://a":     {ExitUsage, []string{"{}/in.jsonl", "nats://a", "{}/o.jsonl", "{}/o.errors.jsonl", "{}/o.errors.jsonl"}},
		"run {}/in.jsonl -o {}/o.jsonl --provider sim":                   {ExitOK, nil},
	} {
		dir, out := t.TempDir(), strings.Builder{}
		if err := os.WriteFile(filepath.Join(dir, "in.jsonl"), []byte(`{"prompt":"a","id":"a"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		here := strings.NewReplacer("{}", dir)
		got = nil
		code := run(t.Context(), aWorld(&out, nil, extras, strings.Fields(here.Replace(args))...))
		for i := range want.got {
			want.got[i] = here.Replace(want.got[i])
		}
		if code != want.code || !slices.Equal(got, want.got) {
			t.Errorf("%s: %d, %q, want %d, %q\n%s", args, code, got, want.code, want.got, out.String())
		}
		if strings.HasPrefix(args, "run a.jsonl b") && !strings.Contains(out.String(), "--cluster: 2 inputs, and a run takes one there: headrace submit --wait takes several") {
			t.Errorf("%s: %s", args, out.String())
		}
		if want.got != nil && !strings.Contains(out.String(), "it broke\nheadrace: nothing was called") {
			t.Errorf("%s: not the words of run:\n%s", args, out.String())
		}
	}
}

// The groups have each flag of run once, but for the one that says where, and for verbose: only
// headrace run ends with a summary.
func TestEachFlagIsInOneGroup(t *testing.T) {
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	new(runFlags).register(fs)
	names := strings.Fields(strings.Join(slices.Collect(maps.Values(flagsIn)), " ") + " cluster verbose")
	fs.VisitAll(func(f *pflag.Flag) {
		if n := len(names); n != len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == f.Name }))+1 {
			t.Errorf("--%s is not in one group", f.Name)
		}
	})
	if len(names) != countFlags(fs) {
		t.Errorf("%d names for %d flags", len(names), countFlags(fs))
	}
}

// settingsWith are those of a command line.
func settingsWith(t *testing.T, env map[string]string, flags Flags, args ...string) *Settings {
	t.Helper()
	s, cmd := NewSettings(aWorld(io.Discard, env, nil), flags), &cobra.Command{}
	s.Register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	return s
}

// One machine's settings for a job's lines are those by which another reads them, whatever its own say.
// Its provider and how it calls it stay its own.
func TestOthersReadAsTheyWereTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("system: of the file\nrpm: 17\noutput: x\nmax-tokens: 55\nidle-lanes: 17m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	submit := settingsWith(t, map[string]string{"HEADRACE_FORMAT": "csv"}, Whom|Input|Files,
		"-o", "out", "--template", "{{.a}}", "--model", "m2", "--on-bad-line", "skip", "--max-tokens", "77")
	told := submit.Told(Input)
	if want := map[string]string{"format": "csv", "template": "{{.a}}", "model": "m2", "on-bad-line": "skip", "max-tokens": "77"}; !maps.Equal(told, want) {
		t.Errorf("%v, want %v", told, want)
	}
	env := map[string]string{"HEADRACE_SYSTEM": "of the environment", "HEADRACE_CONCURRENCY": "5", "AWS_REGION": "eu-west-9", "K": "a-key-123"}
	worker := settingsWith(t, env, Whom|Keys|Pace|Config, "--provider", "bedrock", "--api-key-env", "K", "--seed", "15", "--config", file)
	calls, err := worker.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer calls.Close()
	other, err := worker.For(told)
	if err != nil {
		t.Fatal(err)
	}
	if own := calls.Job(promptfile.Input{}); own.MaxTokens != 55 || own.Watch.Ended != nil { // what the file alone sets
		t.Errorf("%+v", own)
	}
	job := other.Job(promptfile.Input{Name: "x"})
	read := job.Reader
	if read.Format != prompts.FormatCSV || read.Template == nil || read.DefaultModel != "m2" || read.System != "" {
		t.Errorf("the reader is %+v", read)
	}
	if !job.SkipBad || job.MaxTokens != 77 || job.Concurrency != 5 || job.Lane("m2") != "bedrock/m2" || job.Redact("a-key-123") != "[redacted]" {
		t.Errorf("the job is %+v", job)
	}
	for _, want := range []string{"RPM:17 ", "WithIdleLanes(17m0s)", "WithSeed(15)"} {
		if a, b := fmt.Sprint(calls.Options()), fmt.Sprint(other.Options()); !strings.Contains(a, want) || !strings.Contains(b, want) {
			t.Errorf("no %s in\n%s\n%s", want, a, b)
		}
	}
	defer other.Close()
	for name, value := range map[string]string{"rpm": "5", "api-key-file": "/etc/passwd", "format": "none", "limit": "many"} {
		if _, err := worker.For(map[string]string{name: value}); err == nil {
			t.Errorf("%s=%s was taken", name, value)
		}
	}
}

// A job says whom to call where the worker does not; a key that a worker names goes to whom
// the worker names, and to nobody else.
func TestAJobSaysWhomToCall(t *testing.T) {
	job := map[string]string{"provider": "groq", "model": "m", "base-url": "http://127.0.0.1:9/v1"}
	for _, c := range []struct {
		args []string
		lane string // "": it is refused
	}{
		{nil, "groq/m"},
		{[]string{"--provider", "mistral", "--base-url", "http://127.0.0.1:8/v1"}, "mistral/all-models"},
		{[]string{"--api-key-env", "K", "--provider", "mistral", "--base-url", "http://127.0.0.1:8/v1"}, "mistral/all-models"},
		{[]string{"--api-key-env", "K"}, ""},
	} {
		worker := settingsWith(t, map[string]string{"K": "a-key-123"}, Whom|Keys|Pace|Config, c.args...)
		calls, err := worker.For(job)
		if c.lane == "" {
			if err == nil || !strings.Contains(err.Error(), "--provider") {
				t.Errorf("%v: %v", c.args, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		if lane := calls.Job(promptfile.Input{}).Lane("m"); lane != c.lane {
			t.Errorf("%v: %s, want %s", c.args, lane, c.lane)
		}
		calls.Close()
	}
}

// The first signal drains, the second abandons, and a run that was drained says so.
func TestSettingsWatchSignals(t *testing.T) {
	signals := make(chan os.Signal)
	w := aWorld(io.Discard, nil, nil)
	w.signals = signals
	s := NewSettings(w, Whom)
	drain, calls, closed := s.Watch(t.Context(), func(event.Code, string) {})
	defer closed()
	signals <- os.Interrupt
	<-drain
	if calls.Err() != nil {
		t.Error("the first signal abandons the calls")
	}
	var end *ending
	if err := s.Verdict(&promptfile.Sums{Left: true}); !errors.As(err, &end) || end.code != ExitInterrupted {
		t.Errorf("%v", err)
	}
	signals <- os.Interrupt
	<-calls.Done()
}
