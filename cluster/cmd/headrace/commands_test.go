package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/settings"
)

// Each command says what it is, and refuses what it does not know, with the codes of the light one.
func TestHelpAndRefusals(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.must(0, "--help", "Many machines:", "worker", "hub", "submit", "jobs", "limits", "cluster")
	for line, says := range map[string]string{
		"worker --help": "--ack-wait", "hub --help": "--ready-file", "submit --help": "--max-attempts", "jobs --help": "retry-failed", "jobs watch --help": "--progress",
		"jobs fetch --help": "--partial", "limits --help": "reset", "limits set --help": "--tpm", "cluster check --help": "Exit codes: 0 everything is safe", "run --help": "--cluster",
	} {
		h.must(0, line, says)
	}
	h.must(0, "__complete worker --law p", "model\nplain\nnone\n:4")
	h.must(0, "__complete worker --keeper n", "may\nnever\nprefer\n:4")
	h.write("in.jsonl", questions(1))
	for line, says := range map[string]string{
		"worker":                             "no cluster is named",
		"jobs":                               "no cluster is named",
		"cluster check":                      "no cluster is named",
		"worker --join x":                    "not a line to join by",
		"worker extra --join x":              "unexpected argument",
		"worker --max-attempts 3":            "unknown flag: --max-attempts",
		"worker --color never":               "unknown flag: --color",
		"worker --join nats://T@127.0.0.1:1": "name it with --store",
		"jobs status":                        "accepts 1 arg",
		"limits reset":                       "accepts 1 arg",
		"jobs status a b":                    "accepts 1 arg",
		"jobs watch a b":                     "accepts 1 arg",
		"jobs fetch a b":                     "accepts 1 arg",
		"submit -o o.jsonl":                  "no input: name a prompt file",

		"worker --ack-wait 1ms --join nats://T@h":                                           "--ack-wait 1ms: it must be 1s or more",
		"worker --lease 100ms --join nats://T@h":                                            "--lease 100ms: it must be 1s or more",
		"limits set org --cluster nats://T@h":                                               "nothing to set for limit org: give --rpm",
		"cluster chek":                                                                      "unexpected argument \"chek\"",
		"submit {}/in.jsonl -o o.jsonl --weight 0 --cluster nats://T@h":                     "--weight 0: it must be a number more than 0",
		"submit {}/in.jsonl -o o.jsonl --weight -1 --cluster nats://T@h":                    "--weight -1: it must be a number more than 0",
		"submit {}/in.jsonl -o o.jsonl --chunk-lines 0 --cluster nats://T@h":                "--chunk-lines 0: it must be 1 or more",
		"worker --keeper sometimes --join nats://T@h":                                       "want may, never or prefer",
		"submit {}/in.jsonl -o o.jsonl --provider sim":                                      "no cluster is named",
		"submit {}/in.jsonl -o o.jsonl --base-url http://api.openai.com/v1":                 "try https://api.openai.com/v1, or add --insecure-http",
		"worker --join nats://T@h --base-url http://api.openai.com/v1":                      "try https://api.openai.com/v1, or add --insecure-http",
		"submit {}/in.jsonl -o o.jsonl --insecure-http --base-url http://api.openai.com/v1": "no cluster is named",

		"run - -o o.jsonl --provider sim --cluster":              "other machines cannot read standard input",
		"run {}/in.jsonl -o - --provider sim --cluster":          "nor write standard output",
		"run {}/no.jsonl -o {}/o.jsonl --provider sim --cluster": "no such file",
		"run {}/in.jsonl -o {}/o.jsonl --cluster":                "OPENAI_API_KEY is not set",

		"run {}/in.jsonl -o {}/o.jsonl --provider sim --cluster --law none": "--law none cannot be used in a cluster",
	} {
		h.must(exit.Usage, line, says)
	}
}

// A run in a cluster of this process names the items that failed, as a run without one does.
func TestTrialNamesWhatFailed(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	bad := func(n int) string {
		return fmt.Sprintf(`{"custom_id":"bad%d","method":"POST","url":"/v1/chat/completions","body":{"model":"sim","messages":[]}}`+"\n", n)
	}
	for file, c := range map[string]struct{ text, says string }{
		"one.jsonl": {
			questions(9) + bad(1),
			"10 % of the items failed and the rest were answered: bad1 (openai: invalid: 400 invalid_request_error: Missing required parameter: 'messages'.)\n",
		},
		"four.jsonl": {questions(6) + bad(1) + bad(2) + bad(3) + bad(4), ", bad3 (openai: invalid: 400 invalid_request_error: Missing required parameter: 'messages'.), …\n"},
	} {
		h.write(file, c.text)
		flags := " --provider sim --sim-profile fast --seed 7 --concurrency 1"
		h.must(exit.ItemsFailed, "run {}/"+file+" -o {}/alone-"+file+flags, c.says)
		h.must(exit.ItemsFailed, "run {}/"+file+" -o {}/cluster-"+file+" --cluster"+flags, c.says)
	}
}

// A run in a cluster of this process gives the file of a run without one, however its input is packed or cut short.
func TestTrialIsARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, flags string }{
		"lines":    {"in.jsonl", questions(120), ""},
		"packed":   {"in.jsonl.gz", packed(questions(60)), ""},
		"limited":  {"in.jsonl", questions(60), "--limit 7"},
		"a table":  {"in.csv.gz", packed("text,n\n\"a, b\",1\nc,2\n\"d\ne\",3\n"), "--template {{.text}}"},
		"bad line": {"in.jsonl", questions(3) + "{\"prompt\":\n" + questions(2), "--on-bad-line skip"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHere(t)
			h.write(c.file, c.text)
			flags := " --provider sim --sim-profile fast --seed 7 " + c.flags
			want, _, _ := h.typed("run {}/" + c.file + " -o {}/one.jsonl --order input" + flags)
			h.must(want, "run {}/"+c.file+" -o {}/many.jsonl --cluster"+flags, "headrace worker --join 'nats://", "results in ")
			if one, many := h.resultsOf("one.jsonl"), h.resultsOf("many.jsonl"); !slices.Equal(one, many) || len(one) == 0 {
				t.Errorf("%d and %d lines:\n%s\n\n%s", len(one), len(many), strings.Join(one, "\n"), strings.Join(many, "\n"))
			}
			if name != "packed" {
				return
			}
			h.must(0, "run {}/"+c.file+" -o {}/many.jsonl --cluster"+flags) // it goes on with what is there
			if jobs, _ := filepath.Glob(filepath.Join(h.dir, "many.jsonl.cluster", "jobs", "*")); len(jobs) != 1 {
				t.Errorf("the same command again is another job: %q", jobs)
			}
		})
	}
}

// A run in a cluster of this process keeps to --max-cost over all commands to its output: it stops with the code of a run, and names
// a command with more. A command without the flag has the cap of before. Less is refused, and so is a cap that comes late.
func TestTrialKeepsToItsCap(t *testing.T) {
	t.Parallel()
	const items = 60
	h := newHere(t)
	h.write("in.jsonl", questions(items))
	capped := func(output string, share float64) string {
		line := "run {}/in.jsonl -o {}/" + output + " --cluster --provider sim --sim-profile fast --seed 7 --param max_tokens=5 --price 0,1000000" // $1 a token out
		if share > 0 {
			line += fmt.Sprintf(" --max-cost %v", share*items*5)
		}
		return line
	}
	h.must(exit.Usage, "run {}/in.jsonl -o {}/x.jsonl --cluster --provider sim --model unheard-of --max-cost 1", "--max-cost: the price of unheard-of is not known")
	h.must(exit.Bound, capped("out.jsonl", 0.5), "its cap (--max-cost) is reached", "--max-cost 300\n")
	h.must(exit.Bound, capped("out.jsonl", 0.8), "--max-cost 480\n")
	h.must(exit.Usage, capped("out.jsonl", 0.7), "its --max-cost is $240 already: give more")
	h.must(exit.Bound, capped("out.jsonl", 0), "the job of this output has --max-cost 240, which holds", "--max-cost 480\n")
	h.must(exit.OK, capped("out.jsonl", 8), "60 results in ")
	h.must(exit.OK, capped("other.jsonl", 0), "60 results in ")
	h.must(exit.Usage, capped("other.jsonl", 2), "began without it")
}

// The file of --prices goes with a job, wherever it is named: each worker books with it, and a cap counts by it. A file that is not
// there, or has no prices, is refused before anything else.
func TestPricesGoWithTheJob(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.write("in.jsonl", strings.ReplaceAll(questions(40), "}", `,"model":"priced","max_tokens":5}`))
	h.write("prices.json", "{\n  \"priced\": {\"input\": 0, \"output\": 1000000}\n}\n") // $1 a token out
	h.write("config.yaml", "provider: sim\nsim-profile: fast\nprices: "+h.dir+"/prices.json\n")
	h.write("long.json", `{"priced":{"input":1,"output":1},"`+strings.Repeat("x", 1<<18)+`":{"input":1,"output":1}}`)
	h.must(exit.Usage, "submit {}/in.jsonl -o {}/o.jsonl --provider sim --prices {}/none.json --cluster nats://T@127.0.0.1:1", "--prices: open ")
	h.must(exit.Bound, "run {}/in.jsonl -o {}/trial.jsonl --cluster --config {}/config.yaml --max-cost 100", "its cap (--max-cost) is reached")
	h.hub()
	h.worker("-c 8")
	h.worker("-c 8")
	h.must(exit.Usage, "submit {}/in.jsonl -o {}/o.jsonl --provider sim --prices {}/long.json", "keep only the models of its lines")
	h.must(exit.Bound, "submit {}/in.jsonl -o {}/capped.jsonl --config {}/config.yaml --max-cost 100 --wait", "its cap (--max-cost) is reached")
	h.must(exit.OK, "submit {}/in.jsonl -o {}/whole.jsonl --config {}/config.yaml --wait", "40 results in ", ", for $")
	h.write("prices.json", `{"priced": {"input": 0, "output": 2000000}}`)
	h.must(exit.OK, "submit {}/in.jsonl -o {}/whole.jsonl --config {}/config.yaml --wait", "it keeps what it was submitted with: --prices #")
	text, err := os.ReadFile(filepath.Join(h.dir, "whole.jsonl"))
	if n := strings.Count(string(text), `"cost_source":"file"`); err != nil || n != 40 {
		t.Errorf("%d lines have a cost by the file: %v\n%s", n, err, text)
	}
}

// A bad line refuses a job before anything is called, as it refuses a run.
func TestBadLinesAreRefused(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.write("in.jsonl", questions(2)+"no line\n")
	h.must(exit.Usage, "run {}/in.jsonl -o {}/o.jsonl --provider sim --cluster", "in.jsonl:3: not JSON", "headrace: 1 bad line, nothing was called: correct or remove what is wrong, then run:\nheadrace run ")
}

// A job's life, as its user types it: given, looked at, ended, asked for again, fetched.
func TestAJobsLife(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	line := h.hub()
	h.must(0, "jobs ls", "JOB")
	if got := h.must(0, "jobs ls --json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("no jobs are %s", got)
	}
	h.must(exit.Usage, "jobs status none", "no job of that name")
	h.must(exit.Usage, "jobs watch none", "no job of that name")
	h.must(exit.Usage, "jobs cancel none", "no job of that name")
	h.must(exit.Usage, "jobs rm none", "no job of that name")
	h.write("in.jsonl.gz", packed(questions(80)))
	name := strings.TrimSpace(h.must(0, "submit {}/in.jsonl.gz -o {}/out.jsonl --provider sim --sim-profile fast --max-attempts 2 --limit-name org --weight 2"))
	h.must(exit.Usage, "jobs rm "+name, "cancel it first")
	h.must(0, "jobs cancel "+name, "canceled")
	h.must(exit.Usage, "jobs retry-failed "+name, "it is canceled")
	h.must(0, "jobs resume "+name)
	end := h.worker("-c 8 --ack-wait 20s --log-level debug --log-file {}/worker.log")
	h.must(0, "jobs watch "+name+" --progress plain", "80/80", "job "+name+": done")
	h.must(0, "jobs status "+name, "done")
	var s node.JobStatus
	if err := json.Unmarshal([]byte(h.must(0, "jobs status "+name+" --json")), &s); err != nil || s.Record.State != job.Done || s.Items != 80 || s.Record.Asking.Settings["max-attempts"] != "2" {
		t.Errorf("%v %+v", err, s)
	}
	h.must(0, "jobs fetch "+name, "80 results in", "0 failed")
	if got := h.resultsOf("out.jsonl"); len(got) != 80 {
		t.Errorf("%d results", len(got))
	}
	h.must(exit.Usage, "jobs cancel "+name, "it is done")
	h.must(0, "jobs rm "+strings.TrimSpace(h.must(0, "submit {}/in.jsonl.gz -o {}/third.jsonl --provider sim --sim-profile fast --limit-name org --limit 7 --chunk-lines 1 --wait")), "is deleted")
	h.must(exit.Usage, "jobs add "+name+" {}/in.jsonl.gz", "it was submitted whole")
	h.must(0, "submit {}/in.jsonl.gz -o {}/second.jsonl --provider sim --sim-profile fast --limit-name org --wait --progress json", `"event":"start"`, `"event":"progress"`)

	h.must(exit.Usage, "submit {}/in.jsonl.gz -o {}/third.jsonl --provider sim --chunk-lines -1", "--chunk-lines -1: it must be 1 or more")
	h.must(exit.Usage, "submit {}/in.jsonl.gz -o {}/in.jsonl.gz --provider sim", "the output is the input", "choose another file")
	h.must(exit.Usage, "submit {}/in.jsonl.gz -o {}/x.jsonl --errors {}/in.jsonl.gz --provider sim", "the errors file is the input")
	h.must(exit.Usage, "submit {}/in.jsonl.gz -o {}/none/x.jsonl --provider sim --wait", "none/x.jsonl: there is no folder", "create it first")
	h.must(exit.Usage, "submit - -o {}/third.jsonl --provider sim", "workers cannot read standard input")
	if got := h.resultsOf("third.jsonl"); len(got) != 7 {
		t.Errorf("%d results", len(got))
	}

	h.eventually("limits ls", "keeper: ", "LIMIT", "org", "WORKER", "OF")
	var o node.Office
	if err := json.Unmarshal([]byte(h.eventually("limits ls --json", `"name":"org"`, `"concurrency":8`)), &o); err != nil || o.Keeper == "" || len(o.Limits) != 1 || o.Limits[0].Name != "org" || len(o.Workers) != 1 || o.Workers[0].Concurrency != 8 {
		t.Errorf("%v %+v", err, o)
	}
	h.must(0, "limits set org --rpm 600")
	h.eventually("limits ls", "600 requests/min (told)")
	h.must(0, "limits reset org")
	h.must(exit.Usage, "limits set org --rpm -1", "requests per minute: -1")

	h.must(exit.Usage, "worker --lease 9s", "--lease 9s: in this cluster it is 3s")
	h.must(exit.Usage, "worker --ack-wait 30s", "--ack-wait 30s: in this cluster it is 20s")
	h.must(0, "cluster check", "a stored message came back", "--ack-wait 20s and --lease 3s", "one of two writers of one name wins")
	if code := end(); code != 0 {
		t.Errorf("the worker ends with %d", code)
	}
	if log, err := os.ReadFile(filepath.Join(h.dir, "worker.log")); err != nil || strings.Count(string(log), "level=DEBUG msg=call") < 80 {
		t.Errorf("the worker's log: %v\n%s", err, log)
	}
	_ = line
}

// Each file of a job goes where its own flag says, else where the submission said. An errors file that nobody named stands
// next to its output.
func TestFetchedFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, errors, submitted, want string }{
		{"", "", "", "s.jsonl s.errors.jsonl"},
		{"", "", "e.jsonl", "s.jsonl e.jsonl"},
		{"", "mine.jsonl", "e.jsonl", "s.jsonl mine.jsonl"},
		{"o.jsonl", "", "e.jsonl", "o.jsonl o.errors.jsonl"},
		{"o.jsonl", "mine.jsonl", "e.jsonl", "o.jsonl mine.jsonl"},
	} {
		f := jobsFlags{output: c.output, errors: c.errors}
		output, failed := f.filesOf(&job.Record{Output: "s.jsonl", Errors: c.submitted})
		if got := output + " " + failed; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// Only a keeper that was waited for in vain is called missing; a bus that is away, or Ctrl-C, keeps its own words.
func TestLimitsSayWhyNoReportCame(t *testing.T) {
	t.Parallel()
	if err := unheard(context.DeadlineExceeded); !exit.IsEnd(err) || !strings.Contains(err.Error(), "no keeper has said") {
		t.Errorf("after the wait: %v", err)
	}
	for _, err := range []error{bus.ErrAway, context.Canceled} {
		if got := unheard(err); !errors.Is(got, err) {
			t.Errorf("%v is reported as %v", err, got)
		}
	}
}

// eventually types a command until its standard output says all that is wanted, and returns it. A look at a cluster lasts 1.5 seconds
// and misses a process that stalls.
func (h *here) eventually(line string, says ...string) (stdout string) {
	h.t.Helper()
	var stderr string
	for began := time.Now(); time.Since(began) < patience; {
		var code int
		code, stdout, stderr = h.typed(line)
		if code == 0 && !slices.ContainsFunc(says, func(want string) bool { return !strings.Contains(stdout, want) }) {
			return stdout
		}
	}
	h.t.Fatalf("headrace %s never says %q:\n%s%s", line, says, stdout, stderr)
	return stdout
}

// A job that its user names a cluster for is run there, with the words and the code of a run.
func TestRunInAClusterElsewhere(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	line := h.hub()
	delete(h.env, "HEADRACE_CLUSTER")
	h.worker("--join " + line + " -c 8")
	h.write("in.jsonl", questions(50))
	flags := " --provider sim --sim-profile fast --seed 3"
	h.must(0, "run {}/in.jsonl -o {}/one.jsonl --order input"+flags)
	code, _, stderr := h.typed("run {}/in.jsonl -o {}/many.jsonl --cluster=" + line + flags)
	if code != 0 || strings.Contains(stderr, line) || !strings.Contains(stderr, "this runs in the cluster at 127.0.0.1:") {
		t.Errorf("%d\n%s", code, stderr)
	}
	if one, many := h.resultsOf("one.jsonl"), h.resultsOf("many.jsonl"); len(one) != len(many) || len(one) != 50 {
		t.Errorf("%d and %d lines", len(one), len(many))
	}
	h.write("prices.json", `{"sim": {"input": 0, "output": 1}}`)
	capped := "run {}/in.jsonl -o {}/capped.jsonl --cluster=" + line + flags + " --param max_tokens=5 --max-cost 60"
	h.must(exit.Usage, capped+" --prices {}/prices.json", "the price of sim-1 is not known")
	if code, _, stderr := h.typed(capped + " --price 0,1000000"); code != exit.Bound || !strings.Contains(stderr, " --max-cost 120\n") {
		t.Errorf("%d\n%s", code, stderr)
	}
}

// What keeps a person from the bus is said by its name, and the token never.
func TestCheckSaysWhatIsUnsafe(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	line := h.hub()
	token := line[strings.Index(line, "//")+2 : strings.Index(line, "@")]
	wrong := strings.Replace(line, token, "another-token", 1)
	h.must(1, "cluster check --store /proc/none", "UNSAFE", "without its store")
	h.must(0, "cluster check", "not settled yet")
	var found []node.Checked
	if err := json.Unmarshal([]byte(h.must(0, "cluster check --json")), &found); err != nil || len(found) < 5 {
		t.Errorf("%v %+v", err, found)
	}
	began := time.Now()
	h.must(1, "cluster check --cluster "+wrong, "UNSAFE", "the token (or user and password) is wrong", "not safe: 1 of")
	h.must(1, "cluster check --store {}/another", "UNSAFE", "it is not the store of this cluster", "is it mounted here", "not safe: 1 of")
	h.must(2, "worker --store {}/another --provider sim", "it is not the store of this cluster")
	h.must(2, "jobs ls --store {}/another", "it is not the store of this cluster")
	for _, one := range []string{"jobs ls --cluster " + wrong, "limits ls --cluster " + wrong, "submit {}/hub -o o --provider sim --cluster " + wrong} {
		code, stdout, stderr := h.typed(one)
		if code != exit.Usage || !strings.Contains(stderr, "token (or user and password) is wrong") || strings.Contains(stdout+stderr, "another-token") {
			t.Errorf("headrace %s: %d\n%s%s", one, code, stdout, stderr)
		}
	}
	t.Logf("in %v", time.Since(began))
}

// Of a job's standing what a run's faces show: what holds it back is that of the limit under which the most calls wait.
func TestPictureOfAJob(t *testing.T) {
	t.Parallel()
	pace := 10.0
	limit := func(name, bound string, wanted int) bus.LimitPicture {
		return bus.LimitPicture{Name: name, Phase: "flowing", Bound: bound, Pace: &pace, Jobs: []bus.JobPicture{{Job: "j", Wanted: wanted}}, Known: []bus.Known{{Limit: "requests", PerSecond: 10, Source: "told"}}}
	}
	whole := func() *node.Standing {
		s := &node.Standing{Began: time.Unix(0, 0), At: time.Unix(100, 0), Done: 400, PerSecond: 4, InFlight: 3, Concurrency: 64, Keeper: "k-1-a", Epoch: 2}
		s.Record.Job, s.Record.State, s.Items, s.Chunks = "j", job.Running, 1000, 10
		s.Workers = []node.WorkerReport{{Name: "w-1-a"}}
		s.Limits = []bus.LimitPicture{limit("p/a#123456", "tokens", 2), limit("p/b@h:1#123456", "requests", 9)}
		return s
	}
	for name, c := range map[string]struct {
		change func(*node.Standing)
		says   string
	}{
		"the limit under which most wait": {func(*node.Standing) {}, "limit on requests of b that you set: 600 a minute"},
		"no worker":                       {func(s *node.Standing) { s.Workers = nil }, "no worker"},
		"no keeper":                       {func(s *node.Standing) { s.Keeper = "" }, "no keeper yet"},
		"places of workers":               {func(s *node.Standing) { s.InFlight, s.Limits = 64, s.Limits[:0] }, "your -c 64"},
		"the parts in work":               {func(s *node.Standing) { s.Limits = s.Limits[:0] }, "the parts that are in work"},
		"a cooldown": {func(s *node.Standing) {
			s.Limits = []bus.LimitPicture{limit("p/a", "cooldown", 1)}
			s.Limits[0].Phase = "cooling"
		}, "cooldown"},
		"a pause":      {func(s *node.Standing) { s.Record.Paused = true }, "paused"},
		"its deadline": {func(s *node.Standing) { s.Record.State, s.Record.Why = job.Stopped, "its deadline was reached" }, "its deadline was reached"},
		"the provider stopped it": {func(s *node.Standing) {
			s.Record.State, s.Limits[0].Phase = job.Stopped, "stopped"
		}, "the provider serves nothing more"},
	} {
		s := whole()
		c.change(s)
		p := pictureOf(s)
		e := event.Of(&p, contextOf(s))
		if text := e.BoundText + " " + e.Bound; !strings.Contains(text, c.says) {
			t.Errorf("%s: held by %q", name, text)
		}
		if e.Done != 400 || e.Total == nil || *e.Total != 1000 {
			t.Errorf("%s: %d of %v", name, e.Done, e.Total)
		}
	}
	torn := whole()
	torn.Since.Doubtful = journal.Doubtful{Calls: 2, Usage: journal.Usage{InputTokens: 3, OutputTokens: 4, CachedTokens: 1}}
	p := pictureOf(torn)
	if e := event.Of(&p, contextOf(torn)); e.Spent.Doubtful != (event.Doubtful{Calls: 2, InputTokens: 3, OutputTokens: 4, CachedTokens: 1}) {
		t.Errorf("doubtful: %+v", e.Spent.Doubtful)
	}
	p = pictureOf(whole())
	if !p.Ends.Known || p.Ends.Likely != 150*time.Second {
		t.Errorf("it ends in %v", p.Ends)
	}
	if whole := whoWorks(whole()); whole != "1 worker: w-1 0 in flight; keeper: k-1 (number 2)" {
		t.Error(whole)
	}
}

// The end of a job says what it cost, and apart from that which of its calls may be billed as well.
func TestCostOfAJob(t *testing.T) {
	t.Parallel()
	torn := journal.Doubtful{Calls: 2, Usage: journal.Usage{InputTokens: 3, OutputTokens: 4}}
	for want, sums := range map[string]parts.Sums{
		"":            {Unpriced: 2},
		", for $0.50": {CostUSD: 0.5, Priced: 1},
		", for at least $0.50 (+ 1 call of unknown price)":                                 {CostUSD: 0.5, Priced: 1, Unpriced: 1},
		"; 1 call was cut off and may be billed":                                           {Doubtful: journal.Doubtful{Calls: 1}},
		", for $0.50; 2 calls were cut off and may be billed: 3 tokens in, 4 out, or more": {CostUSD: 0.5, Priced: 1, Doubtful: torn},
	} {
		if got := costOf(&parts.Fetched{Sums: sums}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A worker gives up on an item when its job says so, and names its calls' limit after its own key.
func TestAWorkerFollowsTheJob(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.env["OPENAI_API_KEY"] = "sk-test-0123456789abcdef"
	out := &said{}
	s := run.NewSettings(h.world(nil, out, out), settings.Vendor|settings.Keys|settings.Pace)
	r := &job.Record{Asking: job.Asking{Settings: map[string]string{"max-attempts": "2", "timeout": "7s", "item-timeout": "9s"}}}
	s.Register(&cobra.Command{})
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	c, err := opener(s)(r)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if l := c.Lane; l.MaxAttempts != 2 || l.AttemptTimeout != 7*time.Second || l.ItemTimeout != 9*time.Second {
		t.Errorf("%+v", l)
	}
	if l := c.Limit; l.MaxAttempts != 0 || l.AttemptTimeout != 0 || l.ItemTimeout != 0 {
		t.Errorf("the limit's is %+v", l)
	}
	if limit := c.LimitOf("m"); !strings.HasPrefix(limit, "openai/m#") || strings.Contains(limit, "0123456789abcdef") {
		t.Errorf("the limit is called %q", limit)
	}
}

// A trial whose store has lost a part of the job asks its items again by the same command: nobody else resumes its job.
func TestATrialAsksALostPartAgain(t *testing.T) {
	t.Parallel()
	h := newHere(t)
	h.write("in.jsonl", questions(20))
	const run = "run {}/in.jsonl -o {}/out.jsonl --provider sim --sim-profile fast --cluster"
	h.must(0, run, "20 results in")
	parts, err := filepath.Glob(filepath.Join(h.dir, "out.jsonl.cluster", "jobs", "*", "parts", "*", "*"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("no parts: %v", err)
	}
	if err := os.Remove(parts[0]); err != nil {
		t.Fatal(err)
	}
	h.remove("out.jsonl") // it is not overwritten by answers that are new
	h.must(0, run, "20 results in")
	if _, err := os.Stat(parts[0]); err != nil {
		t.Error(err)
	}
}
