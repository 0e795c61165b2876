//go:build unix

package tests

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// sceneRows is the number of prompts in a scene.
const sceneRows = 360

// spread are n rows all over the input, and last those at its end.
func spread(n int) (rows []string) {
	for i := range n {
		rows = append(rows, row(i*sceneRows/n+sceneRows/n/2))
	}
	return rows
}

func last(n int) (rows []string) {
	for i := range n {
		rows = append(rows, row(sceneRows-n+1+i))
	}
	return rows
}

// among spoils these rows.
func among(rows []string) func(string, int) bool {
	return func(row string, _ int) bool { return slices.Contains(rows, row) }
}

// all spoils each row, and from spoils each call behind the first n.
func all(string, int) bool { return true }

func from(n int) func(string, int) bool {
	return func(_ string, before int) bool { return before >= n }
}

// without are the rows of the play but for these.
func (p *play) without(rows []string) []string {
	return slices.DeleteFunc(p.everyRow(), func(row string) bool { return slices.Contains(rows, row) })
}

// What servers say, as their users have reported it.
const (
	internalError = `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`
	busy          = `{"error":{"message":"Service unavailable","type":"server_error","param":null,"code":"service_unavailable"}}`
	tooFast       = `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`
	signIn        = `<html><head><title>Sign in</title></head></html>`
	blocked       = `<html><head><title>Request blocked</title></head></html>`
	noChoices     = `{"id":"c","object":"chat.completion","model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":0,"total_tokens":5}}`
	policy        = `{"error":{"message":"Your request was rejected by our usage policy","type":"permission_error","param":null,"code":"policy_violation"}}`
	anothersFile  = `{"error":{"message":"You have no access to file-123","type":"invalid_request_error","param":null,"code":"forbidden"}}`
	tooManyTokens = `{"id":"o","error":{"message":"Input token count + max_tokens parameter must be less than the context length of the model being queried.","type":"invalid_request_error","param":null,"code":null}}`
	unsupported   = `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`
	notThisModel  = `{"error":{"message":"The requested model is not supported.","type":"invalid_request_error","param":"model","code":"model_not_supported"}}`
	noSuchModel   = `{"error":{"message":"The model m does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`
	tooLong       = `{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`
	badImage      = `{"error":{"message":"Invalid image","type":"invalid_request_error","param":"messages","code":"invalid_image"}}`
	headerMissing = `{"type":"error","error":{"type":"invalid_request_error","message":"anthropic-version: header is required"}}`
	badKeyOfXAI   = `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: sk***ne. You can obtain an API key from https://console.x.ai."}`
	badKey        = `{"error":{"message":"Incorrect API key provided: sk-s***cene.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`
	usedUp        = `{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will reset at 2026-01-01 03:10:00"}}`
	planOver      = `{"error":{"code":"1309","message":"Your GLM Coding Plan package has expired"}}`
	locked        = `{"error":{"code":"1112","message":"Your account has been locked, please contact customer service to unlock"}}`
	filtered      = `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"I"},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`
)

// quick is a file of --config by which nobody waits long.
const quick = "backoff: {base: 10ms, max: 10ms}\nbreaker: {open: 200ms, max-open: 200ms}\n"

// configured writes a file of --config.
func configured(t *testing.T, text string) (flag string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return "--config=" + path
}

// staged is a play at a moody server that spoils these calls.
func staged(t *testing.T, bin, name string, spoils func(string, int) bool, spoil http.HandlerFunc, args ...string) *play {
	t.Helper()
	server := must.Get(newMoody(spoils, spoil))(t)
	return newPlay(t, bin, name, sceneRows, server, args...)
}

// badPrompts are scenes in which some prompts fail whenever they are asked, and all others
// are answered.
var badPrompts = []struct {
	name  string
	spoil http.HandlerFunc
	bad   int // prompts; 4 that are forbidden say nothing of the key yet
	code  string
	args  []string
	says  string
	short bool // not left out with -short
}{
	{name: "reset", spoil: resets, bad: 9, code: "transport", says: `connection reset by peer, 5 calls`},
	{name: "500", spoil: says(500, internalError), bad: 9, code: "server", says: `500 server_error: The server had an error, 5 calls`},
	{name: "html", spoil: replies(200, "text/html", signIn), bad: 9, code: "transport", says: `200 with an HTML page: Sign in, 5 calls`},
	{name: "empty", spoil: says(200, ""), bad: 9, code: "empty_answer", says: `an empty body, 5 calls`},
	{name: "no-choices", spoil: says(200, noChoices), bad: 9, code: "empty_answer", says: `there is no answer in it, 5 calls`},
	{name: "firewall", spoil: replies(403, "text/html", blocked), bad: 9, code: "transport", says: `403 with an HTML page: Request blocked, 5 calls`},
	{name: "timeout", spoil: hangs, bad: 4, code: "timeout", args: []string{"--timeout", "5s", "--max-attempts", "3"}, says: `\(3 calls of 5s each went unanswered; --timeout 25s if it needs longer\)`},
	{name: "policy", spoil: says(403, policy), bad: 9, code: "unauthorized", says: `403 policy_violation: Your request was rejected`, short: true},
	{name: "file", spoil: says(403, anothersFile), bad: 9, code: "unauthorized", says: `403 forbidden: You have no access to file-123`},
	{name: "too-many-tokens", spoil: says(403, tooManyTokens), bad: 9, code: "invalid", args: []string{"--provider", "together"}, says: `403 context_length_exceeded: Input token count`},
}

// mostCalls is the most calls that a bad prompt may have: five attempts, and some calls that
// no answer witnessed.
const mostCalls = 9

// Prompts that always fail end as failures of their own, however they fail: all others are
// answered once, and the run ends by itself. A kill in the middle changes nothing of that,
// nor one that leaves only bad prompts. Those are answered by --retry-failed once they can be.
func TestBadPromptsFailAlone(t *testing.T) {
	t.Parallel()
	bin := buildCommand(t)
	var plays []*play
	for _, s := range badPrompts {
		if testing.Short() && !s.short {
			continue
		}
		const whole, middle, end = "whole", "killed", "only bad ones left"
		for _, how := range []string{whole, middle, end} {
			if testing.Short() && how == end {
				continue
			}
			bad := spread(s.bad)
			if how == end {
				bad = last(min(s.bad, fewForbidden(s.code)))
			}
			p := staged(t, bin, s.name+"/"+how, among(bad), s.spoil, s.args...)
			plays = append(plays, p.begin(func(p *play) {
				switch how {
				case middle:
					p.isKilled(p.server.after(sceneRows / 2))
				case end:
					p.server.holdsFrom(0)
					p.isKilled(p.after(func() bool { return endedLines(p.out) == sceneRows-len(bad) }))
					p.server.holdsFrom(-1)
				}
				p.ends(1)
				p.hasSaid(s.says, `[49] items failed for good(, \d of them in an earlier run)?: see .*out\.errors\.jsonl$`)
				p.hasNotSaid(`seems to be down`)
				p.failedAlone(bad, s.code)
				if how == whole {
					p.callsAgree()
					p.healed(bad)
				}
			}))
		}
	}
	report(t, plays)
}

// fewForbidden returns how many forbidden prompts in a row do not yet count against the key.
func fewForbidden(code string) int {
	if code == "unauthorized" {
		return 4
	}
	return 9
}

// failedAlone checks how a run ended in which these rows always fail.
func (p *play) failedAlone(bad []string, code string) {
	p.answered(p.without(bad))
	for row, l := range p.failed(bad) {
		if l.Error != nil && l.Error.Code != code {
			p.faultf("%s failed as %q, want %q", row, l.Error.Code, code)
		}
	}
	calls, _ := p.server.counted()
	for _, row := range bad {
		if calls[row] > mostCalls {
			p.faultf("%s was asked %d times", row, calls[row])
		}
	}
}

// callsAgree checks that one process asked good rows once, and told of each call of a bad one.
func (p *play) callsAgree() {
	failed := p.lines(p.failures)
	calls, _ := p.server.counted()
	for row, n := range calls {
		if l, bad := failed[row]; bad && l.Headrace.Calls != n || !bad && n != 1 {
			p.faultf("%s was asked %d times: %+v", row, n, l.Headrace)
		}
	}
}

// healed checks that --retry-failed asks the failed rows, and only those, once more at a
// server that is well now.
func (p *play) healed(bad []string) {
	before, _ := p.server.counted()
	p.server.spoilsNow(nil, nil)
	p.ends(0, "--retry-failed")
	p.answered(p.everyRow())
	p.failed(nil)
	after, _ := p.server.counted()
	for row, n := range after {
		want := 0
		if slices.Contains(bad, row) {
			want = 1
		}
		if n-before[row] != want {
			p.faultf("%s was asked %d times by --retry-failed, want %d", row, n-before[row], want)
		}
	}
}

// after gives a channel that closes once a condition about the play's files holds.
func (p *play) after(holds func() bool) <-chan struct{} {
	now := make(chan struct{})
	go func() {
		defer close(now)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for p.ctx.Err() == nil && !holds() {
			<-tick.C
		}
	}()
	return now
}

// endedLines returns the number of complete lines of a file.
func endedLines(path string) int {
	text, _ := os.ReadFile(path)
	return strings.Count(string(text), "\n")
}

// A row that failed for good has all its attempts again under --retry-failed. A failure that
// no answer witnesses costs no attempt, so there may be more calls than attempts.
func TestRetryFailedGivesAllAttempts(t *testing.T) {
	t.Parallel()
	const attempts = 3
	bad := spread(3)
	p := staged(t, buildCommand(t), "again", among(bad), says(500, internalError), "--max-attempts", fmt.Sprint(attempts), configured(t, quick))
	report(t, []*play{p.begin(func(p *play) {
		for run := range 2 {
			before, _ := p.server.counted()
			p.ends(1, "--retry-failed")
			p.answered(p.without(bad))
			p.failed(bad)
			after, _ := p.server.counted()
			for _, row := range bad {
				if n := after[row] - before[row]; n < attempts || n > mostCalls {
					p.faultf("%s was asked %d times by run %d, want %d to %d", row, n, run, attempts, mostCalls)
				}
			}
		}
		p.healed(bad)
	})})
}

// oneMistake are scenes in which every prompt is refused for the same reason.
var oneMistake = []struct {
	name  string
	spoil http.HandlerFunc
	args  []string
	asked int // prompts, until it is sure
	says  []string
	short bool
}{
	{
		name: "parameter", spoil: says(400, unsupported), asked: 20, short: true,
		says: []string{`stopped: 20 items were refused alike: openai: invalid: 400 unsupported_parameter: .*max_completion_tokens.*; nothing was answered$`, `--keep-going`},
	},
	{
		name: "model", spoil: says(400, notThisModel), asked: 20,
		says: []string{`stopped: 20 items were refused alike: openai: invalid: 400 model_not_supported: The requested model is not supported.*; nothing was answered$`, `--keep-going`},
	},
	{
		name: "header", spoil: says(400, headerMissing), asked: 20, args: []string{"--provider", "anthropic"},
		says: []string{`stopped: 20 items were refused alike: anthropic: .*anthropic-version: header is required.*; nothing was answered$`, `--keep-going`},
	},
	{
		name: "401", spoil: says(401, badKey), asked: 1,
		says: []string{`stopped: openai refuses the key: 401 invalid_api_key$`, `put a valid key into A_KEY`},
	},
	{
		name: "403", spoil: says(403, policy), asked: mistakeFlight, // as many as are under way
		says: []string{`stopped: .*403 policy_violation: Your request was rejected`},
	},
	{
		name: "404", spoil: says(404, noSuchModel), asked: 1,
		says: []string{`stopped: openai: model_not_found: 404: The model m does not exist$`, `check the model's name \(--model\)`},
	},
	{
		name: "xai-key", spoil: says(400, badKeyOfXAI), asked: 1, args: []string{"--provider", "xai"}, short: true,
		says: []string{`stopped: xai refuses the key: 400`, `put a valid key into A_KEY`},
	},
	{
		name: "zai-1308", spoil: says(429, usedUp), asked: 1, args: []string{"--provider", "zai"},
		says: []string{`stopped: zai: quota_exhausted: 429 1308: Usage limit reached`, `add credit or raise the quota`},
	},
	{
		name: "zai-1309", spoil: says(429, planOver), asked: 1, args: []string{"--provider", "zai"},
		says: []string{`stopped: zai: quota_exhausted: 429 1309: Your GLM Coding Plan package has expired`, `add credit or raise the quota`},
	},
	{
		name: "zai-1112", spoil: says(429, locked), asked: 1, args: []string{"--provider", "zai"},
		says: []string{`stopped: zai: unauthorized: 429 1112: Your account has been locked`},
	},
}

// mistakeFlight is the number of calls that those scenes have in flight.
const mistakeFlight = 16

// One mistake in every line, a key that is refused and a plan that is over stop the run after
// a few calls. The run names the mistake, books no item as failed, and goes on once the
// server is well. A kill before the stop changes nothing.
func TestOneMistakeStopsTheRun(t *testing.T) {
	t.Parallel()
	bin := buildCommand(t)
	var plays []*play
	for _, s := range oneMistake {
		if testing.Short() && !s.short {
			continue
		}
		for _, kill := range []bool{false, true} {
			name := s.name + "/whole"
			if kill {
				name = s.name + "/killed"
			}
			p := staged(t, bin, name, all, s.spoil, append([]string{"-c", fmt.Sprint(mistakeFlight)}, s.args...)...)
			plays = append(plays, p.begin(func(p *play) {
				most := s.asked + mistakeFlight
				if kill { // half of the refusals that it takes have come
					p.server.holdsFrom(s.asked / 2)
					p.isKilled(p.server.after(s.asked/2 + 1))
					p.server.holdsFrom(-1)
					most += mistakeFlight // calls of the killed process may still come in
				}
				_, before := p.server.counted()
				p.ends(3)
				p.hasSaid(append(s.says, `^headrace: 0 results saved, .* not answered: .*. Continue with:$`)...)
				p.answered(nil)
				p.failed(nil)
				if _, after := p.server.counted(); after-before > most {
					p.faultf("%d calls were made", after-before)
				}
				p.server.spoilsNow(nil, nil)
				p.ends(0)
				p.answered(p.everyRow())
				p.failed(nil)
			}))
		}
	}
	report(t, plays)
}

// With --keep-going every prompt is asked, whatever mistake they share, and each has failed.
func TestKeepGoingAsksAll(t *testing.T) {
	t.Parallel()
	bin := buildCommand(t)
	var plays []*play
	for _, how := range []string{"whole", "killed"} {
		p := staged(t, bin, how, all, says(400, unsupported), "--keep-going")
		plays = append(plays, p.begin(func(p *play) {
			if how == "killed" {
				p.isKilled(p.server.after(sceneRows / 2))
			}
			p.ends(1)
			p.hasSaid(`360 items failed for good`, `no call was answered: openai: invalid: 400 unsupported_parameter`)
			p.failedAlone(p.everyRow(), "invalid")
			if how == "whole" {
				p.callsAgree()
			}
		}))
	}
	report(t, plays)
}

// Wrong lines that come first stop the run if they are wrong alike, for all others may be,
// too. With --keep-going, if their prompts are too long, or if they are wrong in different
// ways, they fail, and the others are asked.
func TestWrongLinesFirst(t *testing.T) {
	t.Parallel()
	bin := buildCommand(t)
	const first = 30
	var bad []string
	for i := range first {
		bad = append(bad, row(i+1))
	}
	mixed := func(w http.ResponseWriter, r *http.Request) {
		if strings.ContainsAny(r.PathValue("row")[len("row-000"):], "02468") {
			says(400, badImage)(w, r)
			return
		}
		says(400, unsupported)(w, r)
	}
	var plays []*play
	for _, s := range []struct {
		name  string
		rows  int
		spoil http.HandlerFunc
		code  int
		says  string
	}{
		{"alike", sceneRows, says(400, unsupported), 3, `20 items were refused alike`},
		{"too long", sceneRows, says(400, tooLong), 1, `30 items failed for good`},
		{"too long and no others", first, says(400, tooLong), 1, `30 items failed for good`},
		{"mixed", first, mixed, 1, `30 items failed for good`},
		{"few alike", 5, says(400, unsupported), 3, `5 items were refused alike`},
		{"a single one", 1, says(400, unsupported), 1, `1 item failed for good`},
	} {
		server := must.Get(newMoody(among(bad), s.spoil))(t)
		p := newPlay(t, bin, s.name, s.rows, server, "-c", "4")
		plays = append(plays, p.begin(func(p *play) {
			p.ends(s.code)
			p.hasSaid(s.says)
			if s.code == 3 {
				p.answered(nil)
				p.failed(nil)
				p.ends(1, "--keep-going")
			}
			p.failedAlone(bad[:min(first, s.rows)], "invalid")
		}))
	}
	report(t, plays)
}

// A key that is revoked in the middle stops the run at the fifth refusal. Nothing is booked as
// failed, and what was answered stays.
func TestARevokedKeyStopsTheRun(t *testing.T) {
	t.Parallel()
	const good = 100
	p := staged(t, buildCommand(t), "revoked", from(good), says(401, badKey), "-c", fmt.Sprint(mistakeFlight))
	report(t, []*play{p.begin(func(p *play) {
		p.ends(3)
		p.hasSaid(`stopped: openai refuses the key: 401 invalid_api_key$`, `^headrace: 100 results saved, .* not answered: put a valid key into A_KEY`)
		p.failed(nil)
		if _, total := p.server.counted(); total > good+5+mistakeFlight || len(p.lines(p.out)) != good {
			p.faultf("%d calls, %d answers", total, len(p.lines(p.out)))
		}
		p.server.spoilsNow(nil, nil)
		p.ends(0)
		p.answered(p.everyRow())
		p.failed(nil)
	})})
}

// outages are ways of a server to be down.
var outages = []struct {
	name  string
	spoil http.HandlerFunc // nil: nobody listens
	says  string
	short bool
}{
	{name: "refused", says: `connection refused`, short: true},
	{name: "reset", spoil: resets, says: `connection reset`},
	{name: "500", spoil: says(500, internalError), says: `500`},
	{name: "503", spoil: says(503, busy), says: `503`},
	{name: "429", spoil: says(429, tooFast), says: `429`},
}

// breaks has the server be down from now on.
func (p *play) breaks(spoil http.HandlerFunc) {
	if spoil == nil {
		p.server.down()
		return
	}
	p.server.spoilsNow(all, spoil)
}

// mends has it be well again, but for what it spoils.
func (p *play) mends(spoils func(string, int) bool, spoil http.HandlerFunc) {
	p.server.spoilsNow(spoils, spoil)
	select {
	case <-p.server.over:
		if err := p.server.up(); err != nil {
			p.faultf("%v", err)
		}
	default:
	}
}

// A run that goes on while the server is down waits for it, for results of an earlier run
// prove that it was well once. A kill while it waits changes nothing.
func TestGoingOnInAnOutage(t *testing.T) {
	t.Parallel()
	bin := buildCommand(t)
	const waits = `"event":"transition".*"to":"cooling"`
	var plays []*play
	for _, o := range outages {
		if testing.Short() && !o.short {
			continue
		}
		for _, kill := range []bool{false, true} {
			name := o.name + "/whole"
			if kill {
				name = o.name + "/killed"
			}
			p := staged(t, bin, name, nil, o.spoil, "--progress", "json", "--first-answer", "10ms")
			plays = append(plays, p.begin(func(p *play) {
				p.isKilled(p.server.after(sceneRows / 2))
				p.breaks(o.spoil)
				if kill {
					p.isKilled(p.hears.says(waits, 2))
				}
				again := p.hears.says(waits, 3)
				p.endsAs(0, func(ended <-chan struct{}) {
					if !comes(again, ended) {
						p.faultf("the run has not waited")
					}
					p.mends(nil, nil)
				})
				p.answered(p.everyRow())
				p.failed(nil)
			}))
		}
	}
	report(t, plays)
}

// An outage in the middle costs no prompt an attempt: all are answered, even if each has only
// one, and bad prompts fail all the same.
func TestAnOutageCostsNoAttempt(t *testing.T) {
	t.Parallel()
	bin := buildCommand(t)
	bad := spread(3)
	var plays []*play
	for _, o := range outages {
		if testing.Short() && !o.short {
			continue
		}
		p := staged(t, bin, o.name, among(bad), resets, "--progress", "json", "--max-attempts", "1")
		plays = append(plays, p.begin(func(p *play) {
			again := p.hears.says(`"event":"transition".*"to":"cooling"`, 3)
			half := p.server.after(sceneRows / 2)
			p.endsAs(1, func(ended <-chan struct{}) {
				if comes(half, ended) {
					p.breaks(o.spoil)
				}
				if !comes(again, ended) {
					p.faultf("the run has not waited")
				}
				p.mends(among(bad), resets)
			})
			p.failedAlone(bad, "transport")
		}))
	}
	report(t, plays)
}

// An outage that lasts longer than --outage-patience ends the run. It tells since when nothing
// was answered, books no item as failed, and goes on once the server is well.
func TestOutagePatience(t *testing.T) {
	t.Parallel()
	bin := buildCommand(t)
	var plays []*play
	for _, o := range outages {
		if testing.Short() && !o.short {
			continue
		}
		p := staged(t, bin, o.name, nil, o.spoil, "--outage-patience", "5s")
		plays = append(plays, p.begin(func(p *play) {
			half := p.server.after(sceneRows / 2)
			p.endsAs(3, func(ended <-chan struct{}) {
				if comes(half, ended) {
					p.breaks(o.spoil)
				}
			})
			p.hasSaid(`stopped: nothing has been answered since \d\d:\d\d:\d\d, and \d+ items wait: .*`+o.says, `^headrace: \d+ results saved, .* not answered: .*. Continue with:$`)
			p.failed(nil)
			p.mends(nil, nil)
			p.ends(0)
			p.answered(p.everyRow())
			p.failed(nil)
		}))
	}
	report(t, plays)
}

// Many prompts that always fail, and are all that is left, look like an outage: the run stops
// by --outage-patience and names --keep-going, which ends each of them.
func TestOnlyBadPromptsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for its calls, one at a time")
	}
	t.Parallel()
	bin := buildCommand(t)
	bad := last(14)
	var plays []*play
	for _, s := range []struct {
		name  string
		spoil http.HandlerFunc
		stops string
		soon  bool // it stops by --outage-patience, also with --keep-going
	}{
		{"reset", resets, `stopped: nothing has been answered since \d\d:\d\d:\d\d, and 14 items wait: .*connection reset`, true},
		{"forbidden", says(403, policy), `stopped: .*403 policy_violation`, false},
	} {
		p := staged(t, bin, s.name, among(bad), s.spoil, "--outage-patience", "3s", configured(t, quick))
		plays = append(plays, p.begin(func(p *play) {
			p.server.holdsFrom(0)
			p.isKilled(p.after(func() bool { return endedLines(p.out) == sceneRows-len(bad) }))
			p.server.holdsFrom(-1)
			p.ends(3)
			p.hasSaid(s.stops, `add --keep-going`)
			p.failed(nil)
			if s.soon {
				p.ends(3, "--keep-going")
				p.hasNotSaid(`add --keep-going`)
			}
			p.ends(1, "--keep-going", "--outage-patience", "1m")
			p.answered(p.without(bad))
			p.failed(bad)
		}))
	}
	report(t, plays)
}
