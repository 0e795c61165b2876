package run

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/logs"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// doors lists the effect of each flag of run: with these values something that the run is
// made of reads as it says, and without them it does not. "in" stands for a script that sees
// the effect where nothing shows it.
var doors = map[string]struct {
	given string // separated by spaces; {} is a folder of the test's own
	reads []string
	in    string
}{
	"output":            {"--output {}/other.jsonl", []string{"job.Output={}/other.jsonl", "state={}/other.state.json"}, ""},
	"errors":            {"--errors {}/failed.jsonl", []string{"job.Errors={}/failed.jsonl"}, ""},
	"timeline":          {"--timeline {}/t.jsonl", []string{"timeline={}/t.jsonl"}, ""},
	"provider":          {"--provider sim", []string{"lane=sim/all-models", "job.Simulated=true", "job.Reader.DefaultModel=sim-1"}, ""},
	"base-url":          {"--base-url http://127.0.0.1:9/v1", []string{"client.BaseURL=http://127.0.0.1:9/v1", "job.Reader.Serves=/v1/messages", "server=openai at http://127.0.0.1:9", "option WithLocalServer(1m0s)"}, ""},
	"insecure-http":     {"--insecure-http --base-url http://api.openai.com/v1", []string{"client.BaseURL=http://api.openai.com/v1"}, ""},
	"preset":            {"--preset groq", []string{"option WithCharge({Rule:greater CachedFree:true OutputFactor:0 Assumed:0})", "option WithPeriods([{Family:openai On:requests Per:24h0m0s} {Family:openai On:tokens Per:1m0s} {Family: On:none Per:0s} {Family: On:none Per:0s}])"}, ""},
	"law":               {"--law plain", []string{"option WithPlainLaw()", "state.Law=plain"}, ""},
	"region":            {"--provider bedrock --region eu-west-9 --api-key-env OTHER_KEY", []string{"client.BaseURL=https://bedrock-runtime.eu-west-9.amazonaws.com"}, ""},
	"project":           {"--provider vertex --project p1 --location global --api-key-env OTHER_KEY", []string{"client.BaseURL=https://aiplatform.googleapis.com/v1/projects/p1/locations/global/publishers/google"}, ""},
	"location":          {"--provider vertex --project p1 --location eu-west9 --api-key-env OTHER_KEY", []string{"client.BaseURL=https://eu-west9-aiplatform.googleapis.com/v1/projects/p1/locations/eu-west9/publishers/google"}, ""},
	"resource":          {"--provider azure --resource r1 --api-key-env OTHER_KEY", []string{"client.BaseURL=https://r1.openai.azure.com/openai/v1", "lane=azure/m"}, ""},
	"max-tokens":        {"--provider anthropic --api-key-env OTHER_KEY --max-tokens 77", []string{"job.MaxTokens=77", "job.MaxTokensOfPrompts=77"}, ""},
	"text":              {"--text always", []string{"job.Fields.Text=true", "client.Text=true"}, ""},
	"api-key-file":      {"--api-key-file {}/key", []string{"key=[the-key-in-a-file-123]", "proven={}/key"}, ""},
	"on-untranslatable": {"--on-untranslatable skip", []string{"job.SkipUntranslatable=true"}, ""},
	"api-key-env":       {"--api-key-env OTHER_KEY", []string{"key=[the-other-key-123]", "proven=OTHER_KEY", "redacted=[redacted]"}, ""},
	"header":            {"--header x-gateway-key=env:OTHER_KEY", []string{"key=[the-other-key-123 the-key-of-openai-123]"}, ""},
	"ca-file":           {"--ca-file {}/client.pem", []string{"client.TLS=set"}, ""},
	"client-cert":       {"--client-cert {}/client.pem --client-key {}/client.key", []string{"client.TLS=set", "certificates=1"}, ""},
	"client-key":        {"--client-cert {}/client.pem --client-key {}/client.key", []string{"client.TLS=set", "certificates=1"}, ""},
	"through":           {"", nil, "through.txtar"},
	"share":             {"", nil, "share.txtar"},
	"ctl":               {"--ctl off", []string{"client.Conns=64"}, ""},
	"model":             {"--model m2", []string{"job.Reader.DefaultModel=m2"}, ""},
	"endpoint":          {"--endpoint /v1/embeddings", []string{"job.Reader.DefaultEndpoint=/v1/embeddings"}, ""},
	"format":            {"--format csv", []string{"job.Reader.Format=" + fmt.Sprint(prompts.FormatCSV)}, ""},
	"template":          {"--template {{.text}}", []string{"job.Reader.Template=set"}, ""},
	"param":             {"--param stop=END --param max_tokens=8", []string{"job.Reader.Params={stop [34 69 78 68 34]}", "job.Reader.Params={max_tokens [56]}"}, ""},
	"on-bad-line":       {"--on-bad-line skip", []string{"job.SkipBad=true"}, ""},
	"system":            {"--system short", []string{"job.Reader.System=short"}, ""},
	"concurrency":       {"--concurrency 7", []string{"job.Concurrency=7", "client.Conns=28"}, ""},
	"rpm":               {"--rpm 601", []string{"limits RPM:601"}, ""},
	"tpm":               {"--tpm 602", []string{"limits TPM:602"}, ""},
	"input-tpm":         {"--input-tpm 603", []string{"limits InputTPM:603"}, ""},
	"output-tpm":        {"--output-tpm 604", []string{"limits OutputTPM:604"}, ""},
	"burst":             {"--burst 5s", []string{"limits Burst:5s"}, ""},
	"latency-target":    {"--latency-target 6s --base-url http://localhost", []string{"option WithLatencyTarget(6s)", "option WithLocalServer(6s)"}, ""},
	"price":             {"--price 2,3,1", []string{"price of m=6 true"}, ""},
	"prices":            {"--prices {}/prices.json", []string{"price of mine=13 true", "price of gpt-4o=1.25 true"}, ""},
	"max-attempts":      {"--max-attempts 8", []string{"option WithMaxAttempts(8)"}, ""},
	"max-bodies":        {"--max-bodies 9", []string{"client.MaxBodies=9437184"}, ""},
	"timeout":           {"--timeout 10s --base-url http://localhost", []string{"option WithAttemptTimeout(10s)", "option WithLocalServer(5s)"}, ""},
	"stream":            {"--stream always", []string{"client.Stream=2"}, ""},
	"stream-idle":       {"--stream-idle 9s", []string{"client.StreamIdle=9s"}, ""},
	"first-answer":      {"--first-answer 11s", []string{"option WithFirstAnswer(11s)"}, ""},
	"outage-patience":   {"--outage-patience 20s", []string{"option WithOutagePatience(20s)"}, ""},
	"max-failures":      {"--max-failures 5%", []string{"option WithMaxFailureShare(0.05)"}, ""},
	"max-cost":          {"--max-cost 2.5", []string{"job.MaxCost=2.5"}, ""},
	"keep-going":        {"--keep-going", []string{"option WithKeepGoing()"}, ""},
	"filtered":          {"--filtered fail", []string{"job.FilteredFails=true"}, ""},
	"schema":            {in: "schema.txtar"},
	"schema-retries":    {in: "schema.txtar"},
	"item-timeout":      {"--item-timeout 12s", []string{"option WithItemTimeout(12s)"}, ""},
	"deadline":          {in: "bounds.txtar"},
	"long-wait":         {"--long-wait 13s", []string{"option WithLongWait(13s)"}, ""},
	"order":             {"--order input", []string{"job.InputOrder=true"}, ""},
	"retry-failed":      {"--retry-failed", []string{"job.RetryFailed=true"}, ""},
	"fresh":             {"--fresh", []string{"job.Fresh=true"}, ""},
	"forget":            {in: "state.txtar"},
	"durable":           {"--durable os", []string{"job.Durability=1", "state.Synced=false"}, ""},
	"report":            {in: "report.txtar"},
	"metrics-addr":      {in: "metrics.txtar"},
	"metrics-file":      {in: "metrics.txtar"},
	"linger":            {in: "metrics.txtar"},
	"progress":          {"--progress json", []string{"display=*progress.events", "log=*slog.JSONHandler", "every=1s"}, ""},
	"verbose":           {"--verbose", nil, "first_command.txtar"},
	"color":             {"--color never", []string{"style={Color:false ASCII:true Wide:false}"}, ""},
	"log-level":         {"--log-level debug", []string{"debug=true"}, ""},
	"log-format":        {"--log-format json", []string{"log=*slog.JSONHandler"}, ""},
	"log-file":          {in: "log.txtar"},
	"service-tier":      {"--service-tier flex", []string{`client.Tier="service_tier":"flex"`, "option WithAttemptTimeout(15m0s)"}, ""},
	"spill":             {in: "service_tier.txtar"},
	"pilot":             {in: "pilot.txtar"},
	"yes":               {"--yes", []string{"confirms=false"}, ""},
	"confirm-above":     {"--confirm-above 5", []string{"confirms above 5"}, ""},
	"limit":             {"--limit 14", []string{"job.Reader.Limit=14"}, ""},
	"seed":              {"--seed 15", []string{"option WithSeed(15)", "sim.Seed=15", "sim.TrackIDs=true"}, ""},
	"sim-profile":       {"--sim-profile fast --provider sim", []string{"sim.RPM=0", "server=sim fast"}, ""},
	"print-config":      {in: "print_config.txtar"},
	"cluster":           {in: "cluster.txtar"},
	"config":            {"--config {}/run.yaml", []string{"limits RPM:16", "option WithIdleLanes(17m0s)"}, ""},
}

// Each flag reaches what it is about; a new one must be in the table.
func TestEveryFlagIsPassedOn(t *testing.T) {
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	new(settings.Flags).Register(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		row, ok := doors[f.Name]
		if !ok || row.in == "" && !strings.Contains(row.given, "--"+f.Name) {
			t.Errorf("--%s: a flag that the table does not know", f.Name)
			return
		}
		if _, err := os.Stat(filepath.Join("..", "testdata", "script", row.in)); err != nil {
			t.Errorf("--%s: %v", f.Name, err)
		}
		dir := t.TempDir()
		here := func(s string) string { return strings.ReplaceAll(s, "{}", dir) }
		writeClientPair(t, dir)
		must.Do(t, os.WriteFile(filepath.Join(dir, "run.yaml"), []byte("rpm: 16\nidle-lanes: 17m\n"), 0o600))
		if err := os.WriteFile(filepath.Join(dir, "prices.json"), []byte(`{"mine":{"input":4,"output":5},"gpt-4o":{"input":0.5,"output":0.5,"cached":0.25}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, "key"), []byte("the-key-in-a-file-123\n"), 0o600))
		without, with := passedOn(t, dir), passedOn(t, dir, strings.Fields(here(row.given))...)
		for _, line := range row.reads {
			if line = here(line); slices.Contains(without, line) || !slices.Contains(with, line) {
				t.Errorf("--%s: not %q alone with it, but\n%s", f.Name, line, strings.Join(with, "\n"))
			}
		}
	})
	if n := len(doors); n != flagsOf(fs) {
		t.Errorf("%d rows for %d flags", n, flagsOf(fs))
	}
}

// passedOn returns what a run with these flags is made of, a line for each thing.
func passedOn(t *testing.T, dir string, args ...string) (lines []string) {
	t.Helper()
	env := map[string]string{settings.DefaultKeyEnv: "the-key-of-openai-123", "OTHER_KEY": "the-other-key-123"}
	w := &world.World{Stdout: io.Discard, Stderr: io.Discard, Clock: clockwork.NewFakeClock(), Chance: 99, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	r := newRunner(&verdict.Facts{World: w, Flags: &settings.Flags{}, Input: "in.jsonl", Halt: &world.Halt{Drain: make(chan struct{})}})
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	r.Flags.Register(fs)
	err := fs.Parse(append([]string{"--output", dir + "/out.jsonl"}, args...))
	if err == nil {
		err = r.Flags.Complete(fs, w.Env)
	}
	if err == nil {
		r.Account, err = account.Connect(t.Context(), r.World, r.Flags)
	}
	if err != nil {
		t.Fatal(args, err)
	}
	r.Account.Fleet.CloseIdle()
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	manner := r.show.manner()
	r.show.every = manner.Every()
	say("every=%v", r.show.every)
	r.show.record(nil)
	for _, o := range append(r.calls.options(), r.show.recorder.Options()...) {
		say("option %v", o)
	}
	for part := range strings.FieldsSeq(strings.Trim(fmt.Sprintf("%+v", r.Flags.Limits()), "{}")) {
		if slices.Contains(lines, fmt.Sprintf("option WithLimits(%+v)", r.Flags.Limits())) {
			say("limits %s", part)
		}
	}
	sim := must.Get(r.Account.SimConfig())(t)
	job, state := r.jobConfig(promptfile.Input{Name: r.Input}), r.memory.stateFile()
	lines = append(lines, fields("job", job)...)
	cfg := r.Account.ClientConfig()
	lines = append(lines, fields("client", cfg)...)
	if cfg.TLS != nil {
		say("certificates=%d", len(cfg.TLS.Certificates))
	}
	lines = append(lines, fields("sim", sim)...)
	say("lane=%s", job.Lane("m"))
	say("confirms=%t", r.Flags.Confirms())
	say("confirms above %v", r.Flags.ConfirmAbove)
	say("cost=%v", job.Cost(&prompts.Request{Body: []byte(`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}`)}))
	for _, model := range []string{"m", "mine", "gpt-4o"} {
		b := r.show.bill("", model, provider.Usage{InputTokens: 2_000_000, CachedTokens: 1_000_000, OutputTokens: 1_000_000})
		say("price of %s=%v %t", model, b.USD, b.Known)
	}
	say("key=%s", r.Account.Secrets())
	say("proven=%s", r.Account.Proven)
	say("redacted=%s", job.Redact(env["OTHER_KEY"]))
	if state != nil {
		say("state=%s", state.Path)
		say("state.Law=%s", state.Law)
		say("state.Synced=%t", state.Synced)
		say("server=%s", state.Server)
	}
	say("timeline=%s", r.Flags.TimelinePath())
	say("display=%s", reflect.ValueOf(manner).FieldByName("display").Elem().Type())
	say("style=%+v", r.Flags.Style(r.Env))
	log := logs.Handler(r.Flags, io.Discard)
	say("log=%T", log)
	say("debug=%t", log.Enabled(t.Context(), slog.LevelDebug))
	return lines
}

// fields are the exported ones, those of structs among them too. Of a function, a channel
// and a pointer only whether it is there is said; a list is a line for each.
func fields(name string, v any) (lines []string) {
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		f, at := s.Field(i), name+"."+s.Type().Field(i).Name
		switch {
		case !s.Type().Field(i).IsExported():
		case f.Kind() == reflect.Struct:
			lines = append(lines, fields(at, f.Interface())...)
		case f.Kind() == reflect.Slice:
			for j := range f.Len() {
				lines = append(lines, fmt.Sprintf("%s=%v", at, f.Index(j)))
			}
		case f.Kind() == reflect.Func || f.Kind() == reflect.Chan || f.Kind() == reflect.Pointer || f.Kind() == reflect.Interface:
			if !f.IsNil() {
				lines = append(lines, at+"=set")
			}
		default:
			lines = append(lines, fmt.Sprintf("%s=%v", at, f.Interface()))
		}
	}
	return lines
}

// What no flag is about is passed on all the same, and so is what two are about together.
func TestWhatARunIsAlwaysGiven(t *testing.T) {
	dir := t.TempDir()
	reads(t, passedOn(t, dir, "--provider", "sim", "--model", "m3"), "job.Reader.DefaultModel=m3")
	for _, output := range []string{"-", os.DevNull} { // no file can lie next to these
		reads(t, passedOn(t, dir, "--output", output), "job.Errors="+settings.StdoutErrors)
	}
	reads(t, passedOn(t, dir),
		"option WithAlikeFailures(20)", "option WithOutagePatience(6h0m0s)",
		"option WithClock()", "option WithObserver()", "option WithCalls()", "option WithEnds()", "option WithSeed(99)", "client.HoldBodies=true",
		"job.Drain=set", "job.Lane=set", "job.Cost=set", "job.Redact=set", "job.Checked=true", "job.Stdout=set",
		"job.Watch.Checked=set", "job.Watch.Ended=set", "job.Watch.Skipped=set", "job.Watch.Renamed=set", "job.Watch.Broke=set", "job.Watch.Fault=set",
	)
}

// A list price is that of who makes the model: neither the simulated provider nor a server
// of one's own has it, unless it is said who stands behind that, or what it costs.
func TestWhoHasListPrices(t *testing.T) {
	const has, hasNot = "price of gpt-4o=13.75 true", "price of gpt-4o=0 false"
	for given, want := range map[string]string{
		"":                                 has,
		"--provider sim":                   hasNot,
		"--base-url http://127.0.0.1:9/v1": hasNot,
		"--base-url http://vllm:8000/v1":   hasNot,
		"--base-url http://127.0.0.1:9/v1 --preset openai": has,
		"--base-url https://proxy.example.com/v1":          has,
		"--preset ollama":            hasNot,
		"--provider sim --price 1,2": "price of gpt-4o=4 true",
	} {
		reads(t, passedOn(t, t.TempDir(), strings.Fields(given)...), want)
	}
}

func reads(t *testing.T, lines []string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !slices.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

func flagsOf(fs *pflag.FlagSet) (n int) {
	fs.VisitAll(func(*pflag.Flag) { n++ })
	return n
}

// writeClientPair writes a certificate and its key.
func writeClientPair(t *testing.T, dir string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key := must.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	for name, block := range map[string]*pem.Block{
		"client.pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "client.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

// The settings of a run as --print-config shows them make the same run again, whichever flag they are of.
func TestPrintedSettingsMakeTheSameRun(t *testing.T) {
	dir := t.TempDir()
	writeClientPair(t, dir)
	must.Do(t, os.WriteFile(filepath.Join(dir, "run.yaml"), []byte("rpm: 16\nidle-lanes: 17m\n"), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "prices.json"), []byte(`{"mine":{"input":4,"output":5}}`), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "key"), []byte("the-key-in-a-file-123\n"), 0o600))
	env := map[string]string{settings.DefaultKeyEnv: "the-key-of-openai-123", "OTHER_KEY": "the-other-key-123"}
	for flag, row := range doors {
		if row.given == "" || flag == "output" { // which passedOn gives by itself
			continue
		}
		args := strings.Fields(strings.ReplaceAll(row.given, "{}", dir))
		f, fs := &settings.Flags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.Register(fs)
		must.Do(t, fs.Parse(append([]string{"--output", dir + "/out.jsonl"}, args...)))
		must.Do(t, f.Complete(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok }))
		var text strings.Builder
		must.Do(t, f.WriteConfig(&text, fs))
		shown := filepath.Join(dir, "shown.yaml")
		must.Do(t, os.WriteFile(shown, []byte(text.String()), 0o600))
		with, again := passedOn(t, dir, args...), passedOn(t, dir, "--config", shown)
		if !slices.Equal(with, again) {
			t.Errorf("--%s: with %v the run is made of\n%s\nand with what it shows, of\n%s\nin\n%s", flag, args, strings.Join(with, "\n"), strings.Join(again, "\n"), text.String())
		}
	}
}
