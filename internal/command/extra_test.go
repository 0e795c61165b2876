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

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/schema"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// aWorld is one without a terminal.
func aWorld(out io.Writer, env map[string]string, args ...string) *world.World {
	return &world.World{
		Name: "headrace", Args: args, Stdin: strings.NewReader(""), Stdout: out, Stderr: out, Clock: clockwork.NewRealClock(),
		Env:     func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Signals: make(chan os.Signal), Release: func() {},
	}
}

// askOne is a command of another main: it has some flags of run, and calls whom they say.
func askOne(w *world.World) []*cobra.Command {
	s := run.NewSettings(w, settings.Vendor|settings.Keys|settings.Pace|settings.Says|settings.Config)
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
			return exit.End(exit.ItemsFailed, "%s", job.Redact(err.Error()))
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
		{"ask hello --provider sim --sim-profile fast", nil, exit.OK, []string{"asked in sim/all-models\n"}},
		{"ask hello --provider sim --sim-profile fast --log-level debug --log-format json", nil, exit.OK, []string{`"level":"DEBUG","msg":"call"`}},
		{"ask hello --provider sim", map[string]string{"HEADRACE_SIM_PROFILE": "none"}, exit.Usage, []string{`headrace: --sim-profile: "none" is not known`}},
		{"ask hello --base-url ftp://x", nil, exit.Usage, []string{"must begin with http:// or https://"}},
		{"ask hello", nil, exit.Usage, []string{"headrace: OPENAI_API_KEY is not set"}},
		{"ask hello --output o", nil, exit.Usage, []string{"unknown flag: --output"}},
		{"ask --help", nil, exit.OK, []string{"\nFlags:\n      --join string", "\nProvider:\n", "\nHow fast:\n  -c, --concurrency N"}},
		{"--help", nil, exit.OK, []string{"\nMany machines:\n  ask         Ask one prompt\n", "\nAvailable Commands:\n  completion", "  help        Help", "  run         Run a"}},
		{"worker", nil, exit.Usage, []string{`unknown command "worker"`}},
	} {
		var out strings.Builder
		if code := Run(t.Context(), aWorld(&out, one.env, strings.Fields(one.args)...), extras...); code != one.code {
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
	extras := []Extra{{Commands: askOne}, {Cluster: func(_ context.Context, s *run.Settings, input string) error {
		calls, err := s.Connect()
		if err != nil {
			return err
		}
		defer calls.Close()
		got = []string{input, s.Flags.Cluster, s.Flags.Output, s.Flags.ErrorsPath(), calls.Job(promptfile.Input{}).Errors}
		return s.Verdict.Of(&promptfile.Sums{InputErr: errors.New("it broke")})
	}}}
	for args, want := range map[string]struct {
		code int
		got  []string
	}{
		"run in.jsonl -o {}/o.jsonl --provider sim --cluster":            {exit.Usage, []string{"in.jsonl", settings.ClusterTrial, "{}/o.jsonl", "{}/o.errors.jsonl", "{}/o.errors.jsonl"}},
		"run in.jsonl -o - --errors e --provider sim --cluster=nats://a": {exit.Usage, []string{"in.jsonl", "nats://a", "-", "e", "e"}},
		"run in.jsonl -o {}/o.jsonl --cluster --order some":              {exit.Usage, nil},
		"run a.jsonl b.jsonl -o {}/o.jsonl --provider sim --cluster=a":   {exit.Usage, nil},
		"run a.jsonl nats://a -o {}/o.jsonl --provider sim --cluster":    {exit.Usage, nil},
		"run {}/in* -o {}/o.jsonl --provider sim --cluster=nats://a":     {exit.Usage, []string{"{}/in.jsonl", "nats://a", "{}/o.jsonl", "{}/o.errors.jsonl", "{}/o.errors.jsonl"}},
		"run {}/in.jsonl -o {}/o.jsonl --provider sim":                   {exit.OK, nil},
	} {
		dir, out := t.TempDir(), strings.Builder{}
		must.Do(t, os.WriteFile(filepath.Join(dir, "in.jsonl"), []byte(`{"prompt":"a","id":"a"}`+"\n"), 0o600))
		here := strings.NewReplacer("{}", dir)
		got = nil
		code := Run(t.Context(), aWorld(&out, nil, strings.Fields(here.Replace(args))...), extras...)
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

// settingsWith are those of a command line.
func settingsWith(t *testing.T, env map[string]string, flags settings.Groups, args ...string) *run.Settings {
	t.Helper()
	s, cmd := run.NewSettings(aWorld(io.Discard, env), flags), &cobra.Command{}
	s.Register(cmd)
	must.Do(t, cmd.ParseFlags(args))
	must.Do(t, s.Complete())
	return s
}

// One machine's settings for a job's lines are those by which another reads them, whatever its own say.
// Its provider and how it calls it stay its own.
func TestOthersReadAsGiven(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	must.Do(t, os.WriteFile(file, []byte("system: of the file\nrpm: 17\noutput: x\nmax-tokens: 55\nidle-lanes: 17m\n"), 0o600))
	submit := settingsWith(t, map[string]string{"HEADRACE_FORMAT": "csv"}, settings.Vendor|settings.Input|settings.Files,
		"-o", "out", "--template", "{{.a}}", "--model", "m2", "--on-bad-line", "skip", "--max-tokens", "77")
	given := submit.Given(settings.Input)
	if want := map[string]string{"format": "csv", "template": "{{.a}}", "model": "m2", "on-bad-line": "skip", "max-tokens": "77"}; !maps.Equal(given, want) {
		t.Errorf("%v, want %v", given, want)
	}
	env := map[string]string{"HEADRACE_SYSTEM": "of the environment", "HEADRACE_CONCURRENCY": "5", "K": "a-key-123"}
	worker := settingsWith(t, env, settings.Vendor|settings.Keys|settings.Pace|settings.Config, "--provider", "anthropic", "--api-key-env", "K", "--seed", "15", "--config", file)
	calls := must.Get(worker.Connect())(t)
	defer calls.Close()
	other := must.Get(worker.For(given))(t)
	if own := calls.Job(promptfile.Input{}); own.MaxTokensOfPrompts != 55 || own.Watch.Ended != nil { // what the file alone sets
		t.Errorf("%+v", own)
	}
	job := other.Job(promptfile.Input{Name: "x"})
	read := job.Reader
	if read.Format != prompts.FormatCSV || read.Template == nil || read.DefaultModel != "m2" || read.System != "" {
		t.Errorf("the reader is %+v", read)
	}
	if !job.SkipBad || job.MaxTokensOfPrompts != 77 || job.Concurrency != 5 || job.Lane("m2") != "anthropic/m2" || job.Redact("a-key-123") != "[redacted]" {
		t.Errorf("the job is %+v", job)
	}
	for _, want := range []string{"RPM:17 ", "WithIdleLanes(17m0s)", "WithSeed(15)"} {
		if a, b := fmt.Sprint(calls.Options()), fmt.Sprint(other.Options()); !strings.Contains(a, want) || !strings.Contains(b, want) {
			t.Errorf("no %s in\n%s\n%s", want, a, b)
		}
	}
	defer other.Close()
	for name, value := range map[string]string{
		"rpm": "5", "api-key-file": "/etc/passwd", "format": "none", "limit": "many",
		"schema": file, "schema-retries": "1", run.JobSchema: "{}", "schema-of-a-later-version": "{}",
	} {
		if _, err := worker.For(map[string]string{name: value}); err == nil {
			t.Errorf("%s=%s was taken", name, value)
		}
	}
}

// A job brings the schema that its answers must fit, and how often they are asked for again. What this machine says of
// both is for its own runs.
func TestAJobBringsItsSchema(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	must.Do(t, os.WriteFile(file, []byte(`{"type":"integer"}`), 0o600))
	packed := must.Get(schema.Pack(file))(t)
	must.Do(t, os.WriteFile(file, []byte(`{"type":"string"}`), 0o600))
	for name, worker := range map[string]*run.Settings{
		"a worker": settingsWith(t, map[string]string{"HEADRACE_SCHEMA": file}, settings.Pace|settings.Config, "--config", must.Get(configFile(t, "schema: "+file+"\n"))(t)),
		"a trial":  settingsWith(t, nil, ^settings.Groups(0), "-o", "out", "--provider", "sim", "--schema", file, "--schema-retries", "9"),
	} {
		t.Run(name, func(t *testing.T) {
			calls := must.Get(worker.For(map[string]string{"provider": "sim", run.JobSchema: packed, "schema-retries": "1"}))(t)
			defer calls.Close()
			job := calls.Job(promptfile.Input{})
			for content, fits := range map[string]bool{`7`: true, `\"a\"`: false} {
				reply := provider.Reply{Body: fmt.Appendf(nil, `{"choices":[{"message":{"content":"%s"}}]}`, content)}
				if err := job.Misfit(&promptfile.Item{}, &reply); (err == nil) != fits {
					t.Errorf("%s: %v", content, err)
				}
			}
			if vectors := (&prompts.Request{Endpoint: "/v1/embeddings"}); job.CheckRetries != 1 || job.Reader.Takes(vectors) == nil {
				t.Errorf("%d retries, or lines are taken whose answers have no text", job.CheckRetries)
			}
			other := must.Get(worker.For(map[string]string{"provider": "sim"}))(t)
			defer other.Close()
			if job := other.Job(promptfile.Input{}); job.Check != nil {
				t.Error("a job without a schema is checked")
			}
		})
	}
}

// configFile writes a file for --config.
func configFile(t *testing.T, text string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// A job says whom to call where the worker does not; a key that a worker names goes to whom
// the worker names, and to nobody else.
func TestAJobNamesItsVendor(t *testing.T) {
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
		worker := settingsWith(t, map[string]string{"K": "a-key-123"}, settings.Vendor|settings.Keys|settings.Pace|settings.Config, c.args...)
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
	w := aWorld(io.Discard, nil)
	w.Signals = signals
	s := run.NewSettings(w, settings.Vendor)
	drain, calls, closed := s.Watch(t.Context(), func(event.Code, string) {})
	defer closed()
	signals <- os.Interrupt
	<-drain
	if calls.Err() != nil {
		t.Error("the first signal abandons the calls")
	}
	var end *exit.Ending
	if err := s.Verdict.Of(&promptfile.Sums{Left: true}); !errors.As(err, &end) || end.Code != exit.Interrupted {
		t.Errorf("%v", err)
	}
	signals <- os.Interrupt
	<-calls.Done()
}
