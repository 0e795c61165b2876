package report

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

var update = flag.Bool("update", false, "write the golden files again")

var began = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

// scene is an output with its files.
type scene struct {
	t *testing.T
	facts
}

func newScene(t *testing.T) *scene {
	dir := t.TempDir()
	return &scene{t, facts{
		output: filepath.Join(dir, "results.jsonl"), errors: filepath.Join(dir, "results.errors.jsonl"), timeline: filepath.Join(dir, "results.run.jsonl"),
		state: Ended, now: began.Add(time.Hour), zone: time.UTC, version: "v0.0.0",
	}}
}

// line returns the line of an item.
func line(n int, change func(*journal.Line)) []byte {
	usd := 0.001
	l := journal.LineOf(fmt.Sprintf("item-%d", n), journal.Headrace{
		Line: n, Key: fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(n))))[:32], Attempts: 1, Lane: "openai/gpt-4o-mini", Model: "gpt-4o-mini",
		Usage: journal.Usage{InputTokens: 100, OutputTokens: 20, CachedTokens: 10}, CostUSD: &usd,
		QueuedMS: int64(n % 1000), LatencyMS: int64(500 + n%100),
	})
	l.Response = &journal.Response{StatusCode: 200, Body: json.RawMessage(`{"secret answer":true}`)}
	if change != nil {
		change(&l)
	}
	return journal.AppendLine(nil, &l)
}

func failed(code, message string) func(*journal.Line) {
	return func(l *journal.Line) {
		l.Error, l.Headrace.CostUSD, l.Headrace.Usage = &journal.Failure{Code: code, Message: message}, nil, journal.Usage{}
	}
}

// results writes so many results.
func (s *scene) results(n int, change func(*journal.Line)) {
	file := must.Get(os.Create(s.output))(s.t)
	out := bufio.NewWriterSize(file, 1<<20)
	for k := 1; k <= n; k++ {
		must.Get(out.Write(line(k, change)))(s.t)
	}
	must.Do(s.t, out.Flush())
	must.Do(s.t, file.Close())
}

func (s *scene) failures(lines ...[]byte) {
	must.Do(s.t, os.WriteFile(s.errors, []byte(strings.Join(toStrings(lines), "")), 0o600))
}

func toStrings(lines [][]byte) (list []string) {
	for _, l := range lines {
		list = append(list, string(l))
	}
	return list
}

// run writes a run of so many seconds to the timeline; without a summary it was killed.
func (s *scene) run(at time.Time, seconds int, start event.Start, summary *event.Summary) {
	start.Event, start.At = "start", event.Stamp(at)
	w := must.Get(timeline.Open(timeline.Config{Path: s.timeline, At: at, Start: start, Progress: func() *event.Progress {
		usd, total := 1.5, 100
		return &event.Progress{Event: "progress", At: event.Stamp(at), Total: &total, Provider: "openai", Spent: event.Spent{USD: &usd, Budget: &event.Budget{CapUSD: 5}}}
	}}))(s.t)
	for k := range seconds {
		one := observe.Sample{
			At: at.Add(time.Duration(k+1) * time.Second), Elapsed: float64(k + 1), Span: 1, Answered: 10, Calls: 11, Throttled: 1 - k%2, InputTokens: 1000, OutputTokens: 200,
			USD: 0.01, InFlight: 4, InFlightMost: 6, Allowed: 12, Latency: observe.Buckets{{Number: 60, Count: 10}},
		}
		one.Bounds[limiter.BoundRequests], one.Bounds[limiter.BoundCooldown] = 750*time.Millisecond, 250*time.Millisecond
		w.Sample(one)
	}
	if summary == nil {
		w.Close(nil)
		return
	}
	summary.Event, summary.ElapsedS = "summary", float64(seconds)
	summary.BoundS = map[string]float64{"requests": 0.75 * float64(seconds), "cooldown": 0.25 * float64(seconds)}
	w.Close(summary)
}

func (s *scene) report() *Report { return must.Get(newReport(s.facts))(s.t) }

// summary is the outcome of a run that has lost nothing.
func summary(answered, failed int) *event.Summary {
	n := uint64(answered + failed)
	return &event.Summary{Succeeded: answered, Failed: failed, Offered: n, Settled: n, Calls: n + 7, HandedOver: 7, Throttled: 7, Cooldowns: 2, Truncated: 3, Proved: true, ExitCode: 1}
}

// small is a run that was killed and resumed.
func small(t *testing.T) *scene {
	s := newScene(t)
	s.results(97, nil)
	s.failures(line(98, failed("invalid", "400: maximum context length is 128000 tokens")), line(99, failed("server", "500 after 5 attempts")), line(100, failed("invalid", "400: too long")))
	value, items := "0.5", 100
	start := event.Start{Input: "prompts.jsonl", Output: "results.jsonl", Concurrency: 64, Items: &items, Settings: []event.Setting{{Name: "rpm", Value: &value, From: "flag"}, {Name: "system", From: "file"}}}
	s.run(began, 6, start, nil)
	s.run(began.Add(10*time.Minute), 4, start, summary(37, 3))
	return s
}

// The report of a small run in each form is the one that was looked at.
func TestGolden(t *testing.T) {
	r := small(t).report()
	dir := regexp.MustCompile(regexp.QuoteMeta(filepath.Dir(r.Output)) + "/")
	for name, text := range map[string]string{"small.html": r.HTML(), "small.md": r.Markdown(), "small.json": string(r.JSON())} {
		text = dir.ReplaceAllString(text, "")
		path := filepath.Join("testdata", name)
		if *update {
			must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		}
		if want := string(must.Get(os.ReadFile(path))(t)); text != want {
			t.Errorf("%s differs: look at it, and write it with -update:\n%s", name, text)
		}
	}
}

// The figures are those of the summary and of headrace status, over both runs.
func TestFigures(t *testing.T) {
	r := small(t).report()
	p := must.Get(journal.ReadProgress(r.Output, r.Errors))(t)
	if r.Done != p.Done || r.Failed != p.Failed || *r.Spent.USD != p.CostUSD || r.Spent.InputTokens != p.Usage.InputTokens || r.Done != 97 || r.Failed != 3 {
		t.Errorf("%+v, %+v", r, p)
	}
	if r.OfRuns != 2 || r.TookS != 10 || r.Calls != 66+47 || r.Throttled != 3+7 || r.Truncated != 3 || !*r.Proved {
		t.Errorf("%+v", r)
	}
	if r.Runs[0].Answered != 60 || r.Runs[0].How != "was killed, or its machine went down" || r.Runs[1].Answered != 37 || r.Runs[1].Failed != 3 {
		t.Errorf("%+v", r.Runs)
	}
	if len(r.Bounds) != 2 || r.Bounds[0].Seconds != 7.5 || r.Bounds[1].Share != 0.25 {
		t.Errorf("%+v", r.Bounds)
	}
	if r.Verdict != "97 of 100 items answered, 3 failed" || r.Failures[0].Kind != "invalid" || r.Failures[0].Items != 2 || len(r.Failures[0].Examples) != 2 {
		t.Errorf("%s, %+v", r.Verdict, r.Failures)
	}
	if r.Models[0].Items != 100 || r.Models[0].Failed != 3 || r.Models[0].InputTokens != 9700 {
		t.Errorf("%+v", r.Models)
	}
	if len(r.Waits) != 3 || r.Waits[2].P50S < 0.5 || r.Waits[2].P50S > 0.6 || r.Waits[1].P95S != 0 {
		t.Errorf("%+v", r.Waits)
	}
}

// A page loads nothing, runs nothing, and shows nothing of prompts and answers.
func TestPageIsInert(t *testing.T) {
	text := small(t).report().HTML()
	for _, bad := range []string{"<script", "http://", "https://", "style=\"", "onload", "url(", "@import", "secret answer"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	if !strings.HasPrefix(text, pageMark) || !strings.Contains(text, `default-src 'none'`) {
		t.Error(text[:400])
	}
}

const evil = "</title><script>alert(1)</script>\"'&`|\n# x ![a](http://e.example) \x00\x1b[31m\u202e\xff@you <img src=x onerror=alert(2)>"

// No text of others becomes markup, whichever it is and in whichever form.
func TestHostileTexts(t *testing.T) {
	s := newScene(t)
	s.results(3, func(l *journal.Line) { l.Headrace.Model, l.Headrace.Lane = evil, evil+l.CustomID })
	s.failures(line(9, func(l *journal.Line) {
		failed(evil, evil)(l)
		l.CustomID, l.Headrace.Model, l.Headrace.File = evil, evil, evil
	}))
	value := evil
	sum := summary(3, 1)
	sum.Stopped, sum.ExitCode = evil, 3
	s.run(began, 3, event.Start{Input: evil, Output: evil, Headrace: evil, Settings: []event.Setting{{Name: evil, Value: &value, From: evil}}}, sum)
	r := s.report()
	page, text := r.HTML(), r.Markdown()
	for _, bad := range []string{"<script", "<img", "\x00", "\x1b", "\u202e", "\xff"} {
		if strings.Contains(page, bad) || strings.Contains(text, bad) {
			t.Errorf("it has %q", bad)
		}
	}
	if strings.Contains(text, "http://") || strings.Contains(text, "@you") || regexp.MustCompile(`(?m)^# x`).MatchString(text) {
		t.Errorf("the Markdown has a link, a name or a heading:\n%s", text)
	}
	if !strings.Contains(page, "&lt;script&gt;") || !json.Valid(r.JSON()) {
		t.Error("the text is not there at all")
	}
}

// A page of a timeline as long as they get, with names as long and as odd as they get, stays below its bound.
func TestBoundedPage(t *testing.T) {
	s := newScene(t)
	s.results(2000, func(l *journal.Line) {
		l.Headrace.Model = strings.Repeat(`"😀`, 100) + l.CustomID
		l.Headrace.Lane = l.Headrace.Model
	})
	var lines [][]byte
	for k := range 400 {
		lines = append(lines, line(5000+k, func(l *journal.Line) {
			failed(strings.Repeat(`'"`, 100)+fmt.Sprint(k%40), strings.Repeat(`"'`, 500))(l)
			l.CustomID = strings.Repeat(`"`, 300)
		}))
	}
	s.failures(lines...)
	r := s.report()
	value := strings.Repeat(`"`, 200)
	for k := range 60 {
		run := timeline.Run{At: began.Add(time.Duration(k) * time.Hour), Merged: 1}
		for n := range 60 {
			one := observe.Sample{At: run.At.Add(time.Duration(n) * time.Second), Span: 1, Answered: n * 7919 % 977, Calls: 9, Throttled: n % 2, InputTokens: int64(n * 104729 % 7919), OutputTokens: int64(n * 7), USD: 1.234567, InFlight: float64(n * 31 % 64), InFlightMost: n * 37 % 64, Allowed: 5, Latency: observe.Buckets{{Number: n, Count: 1}, {Number: 2 * n, Count: 1}}}
			for b := range one.Bounds {
				one.Bounds[b] = time.Duration(1+(n*b)%7) * time.Millisecond
			}
			run.Samples = append(run.Samples, one)
		}
		run.Start.Settings = append(run.Start.Settings, event.Setting{Name: value, Value: &value, From: value})
		r.runs = append(r.runs, run)
	}
	r.addRuns(r.runs)
	for range 60 {
		r.Settings = append(r.Settings, event.Setting{Name: "n", Value: &value, From: "flag"})
	}
	if n := len(r.HTML()); n > MaxBytes || n < 50_000 {
		t.Errorf("%d bytes", n)
	}
}

// A million items are read in bounded memory, and their page is no longer than any other.
func TestMillionLines(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("it writes 400 MB, and one goroutine reads them")
	}
	s := newScene(t)
	s.results(1_000_000, func(l *journal.Line) { l.Response.Body = json.RawMessage(`{}`) })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most, over := uint64(0), make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&after)
				most = max(most, after.HeapInuse)
			}
		}
	}()
	r := s.report()
	close(over)
	<-watched
	if used := (most - before.HeapInuse) >> 20; most > before.HeapInuse && used > 96 {
		t.Errorf("%d MiB", used)
	}
	if n := len(r.HTML()); r.Done != 1_000_000 || n > 20_000 || r.Waits[0].P50S < 0.47 || r.Waits[0].P50S > 0.53 {
		t.Errorf("%d bytes, %+v", n, r.Waits)
	}
}

// An output without a timeline has a report of all the rest, and says what is missing.
func TestWithoutTimeline(t *testing.T) {
	s := newScene(t)
	s.results(5, nil)
	page := s.report().HTML()
	if strings.Contains(page, "<h2>Runs") || !strings.Contains(page, "There is no timeline") || !strings.Contains(page, "5 items answered") || !strings.Contains(page, "$0.005") {
		t.Error(page)
	}
}

// An empty output, of a run that has begun nothing, has a report.
func TestEmptyRun(t *testing.T) {
	s := newScene(t)
	must.Do(t, os.WriteFile(s.output, nil, 0o600))
	s.run(began, 0, event.Start{Input: "p.jsonl"}, &event.Summary{Proved: true})
	r := s.report()
	if r.Verdict != "0 of 100 items answered" || !strings.Contains(r.HTML(), "Nothing.") || !strings.Contains(r.Markdown(), "0 of 100") || !json.Valid(r.JSON()) {
		t.Errorf("%+v", r)
	}
}

// A run that goes on or was killed is called so, and its proof is not claimed.
func TestStates(t *testing.T) {
	s := newScene(t)
	s.results(5, nil)
	s.run(began, 5, event.Start{Input: "p.jsonl"}, nil)
	for state, words := range map[State][2]string{Running: {"The run goes on", "goes on"}, Killed: {"was killed, or its machine went down: the same command resumes it", "was killed"}} {
		s.state = state
		r := s.report()
		if page := r.HTML(); !strings.Contains(page, words[0]) || !strings.HasPrefix(r.Runs[0].How, words[1]) || strings.Contains(page, "holds ✓") || r.Proved != nil {
			t.Errorf("%s: %s", state, r.Runs[0].How)
		}
	}
}

// Each lane of several has its cost, and one without a price is never free.
func TestLanesWithMoney(t *testing.T) {
	s := newScene(t)
	s.results(9, func(l *journal.Line) {
		l.Headrace.Lane = fmt.Sprintf("lane-%d", l.Headrace.Line%3)
		if l.Headrace.Line%3 == 2 {
			l.Headrace.CostUSD = nil
		}
	})
	r := s.report()
	if len(r.Lanes) != 3 || r.Lanes[2].Unpriced != 3 || r.Lanes[2].Priced != 0 || r.Spent.Unpriced != 3 {
		t.Errorf("%+v", r.Lanes)
	}
	if page := r.HTML(); !strings.Contains(page, "at least $0.006") || !strings.Contains(page, "unknown (3 calls of unknown price)") {
		t.Error(page)
	}
}

// A file that is no report is never replaced.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	own, other := filepath.Join(dir, "a.html"), filepath.Join(dir, "b.html")
	r := small(t).report()
	must.Do(t, writeFile(r, own))
	must.Do(t, writeFile(r, own))
	must.Do(t, os.WriteFile(other, []byte("<!doctype html><p>mine"), 0o600))
	for file, ok := range map[string]bool{own: true, filepath.Join(dir, "new.md"): true, filepath.Join(dir, "new.json"): true, other: false, filepath.Join(dir, "x.txt"): false, filepath.Join(dir, "none", "x.html"): false, dir + "/": false} {
		if err := Check("--report", file); (err == nil) != ok {
			t.Errorf("%s: %v", file, err)
		}
	}
	if writeFile(r, other) == nil {
		t.Error("it has replaced another file")
	}
	info := must.Get(os.Stat(own))(t)
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
}

// A bad line names no model, and the title of a report leaves no gap for it.
func TestTitleNamesModelsOnly(t *testing.T) {
	r := &Report{Output: "out.jsonl", Provider: "sim", Models: []Model{{Model: "a"}, {}, {Model: "b"}, {Model: "c"}, {Model: "d"}}}
	if got := r.subtitle(); got != "out.jsonl, a, b, c and 1 more model on sim" {
		t.Errorf("%q", got)
	}
}

// The table of the plots has the first run and the latest, however many there are.
func TestRowsOfManyRuns(t *testing.T) {
	s := newScene(t)
	s.results(9, nil)
	const runs = 21
	for k := range runs {
		s.run(began.Add(time.Duration(k)*time.Minute), 7, event.Start{}, nil)
	}
	r := s.report()
	rows, latest := r.tableRows(), r.moment(began.Add((runs-1)*time.Minute))
	if len(rows) > mostRows || rows[0].from != r.moment(began) || rows[len(rows)-1].from < latest {
		t.Errorf("%d rows from %s to %s, want some of the run at %s", len(rows), rows[0].from, rows[len(rows)-1].from, latest)
	}
}

// A report names the number of models that it leaves out.
func TestManyModels(t *testing.T) {
	s := newScene(t)
	s.results(25, func(l *journal.Line) { l.Headrace.Model = l.CustomID })
	r := s.report()
	if text := r.subtitle(); !strings.Contains(text, "and 22 more models") {
		t.Error(text)
	}
	for _, text := range []string{r.HTML(), r.Markdown()} {
		if !strings.Contains(text, "And 5 more models.") {
			t.Error(text)
		}
	}
}

// Earlier tries that have a price are the cost of items whose latest try has none.
func TestCostOfEarlierTriesAlone(t *testing.T) {
	var r Report
	r.addSpent(&journal.Progress{Failed: 5, CostUSD: 0.5, AgainUSD: 0.5})
	if r.Spent.USD == nil || *r.Spent.USD != 0.5 || r.costWords() != "In all: $0.50, $0.50 for earlier tries." {
		t.Errorf("%+v", r.Spent)
	}
}
