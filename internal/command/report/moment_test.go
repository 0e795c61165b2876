package report

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// moment is a run of so many seconds that goes on.
func moment(seconds int) *Moment {
	total, usd := 1000, 0.5
	m := &Moment{Began: began, Zone: time.UTC, Concurrency: 64, Progress: &event.Progress{
		Event: "progress", At: event.Stamp(began.Add(time.Duration(seconds) * time.Second)), State: "running", Done: 10 * seconds, Total: &total, Failed: 3, Input: "prompts.jsonl", Output: "results.jsonl",
		Provider: "openai", Models: []string{"gpt-4o-mini"}, Concurrency: 64, BoundWide: "the limit on requests", EndsShort: "14:07, in 6 min", Spent: event.Spent{USD: &usd},
		Failures: []event.Failure{
			{Kind: "invalid", Code: "400", Count: 2, Example: observe.Example{Line: 7, ID: "item-7", Message: "a prompt is quoted"}},
			{Kind: "invalid", Code: "413", Count: 1, Example: observe.Example{Line: 9, ID: "item-9", Message: "too long"}},
		},
		Lanes: []event.Lane{{Name: "openai/gpt-4o-mini", Phase: "flowing", BoundShort: "requests limit", Answered: 57}},
	}}
	var samples Samples
	for k := range seconds {
		one := observe.Sample{At: began.Add(time.Duration(k+1) * time.Second), Span: 1, Answered: 10, Calls: 11, InFlight: 4, InFlightMost: 6, Allowed: 12, USD: 0.01, Latency: observe.Buckets{{Number: 60, Count: 10}}}
		one.Bounds[limiter.BoundRequests] = time.Second
		samples.Add(one)
	}
	m.Samples = samples.All()
	return m
}

// The live page shows how far the run is, what holds it back, the plots, what failed and its lanes.
func TestMoment(t *testing.T) {
	title, body := moment(6).HTML()
	if title != "60 of 1,000 items done, 3 failed in this run" {
		t.Error(title)
	}
	for _, part := range []string{
		"<h1>60 of 1,000", "prompts.jsonl → results.jsonl, gpt-4o-mini on openai", "14:07, in 6 min", "$0.50", "the limit on requests 6.0 s (100 %)", "<h3>Items a second", "<h3>Cost in USD",
		"line 7, id item-7: a prompt is quoted", "<td>invalid</td><td>3</td><td>5.00 %</td>", "flowing, held by requests limit", "goes on",
	} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	if strings.Contains(body, "<script") || strings.Contains(body, "<style") || strings.Contains(body, "last state") {
		t.Error(body)
	}
	m := moment(6)
	m.Bare = true
	m.Earlier = []timeline.Run{{At: began.Add(-time.Hour), Merged: 1, Over: true, Summary: &event.Summary{ExitCode: 3, Stopped: "a prompt is quoted"}}}
	if _, body := m.HTML(); strings.Contains(body, "item-7") || strings.Contains(body, "quoted") || !strings.Contains(body, "<td>invalid</td><td>3</td>") || !strings.Contains(body, "stopped by the provider") {
		t.Error("a bare page has examples or reasons of providers, or no failures")
	}
	if m.Bare = false; !strings.Contains(second(m.HTML()), "stopped by the provider: a prompt is quoted") {
		t.Error("it does not say why the provider stopped the run before")
	}
}

func second(_, text string) string { return text }

// A change of the ceiling stands in the plot from its moment on, and in a table.
func TestMomentOfAChangedRun(t *testing.T) {
	m := moment(4)
	if _, body := m.HTML(); !strings.Contains(body, `-c 64 <b class="v" data-v="64|||"></b>`) || strings.Contains(body, "Changed while") {
		t.Error(body)
	}
	m.Samples[0].Bounds, m.Progress.Concurrency = observe.Ledger{limiter.BoundConcurrency: time.Second}, 8
	m.Changes = []event.Changed{{At: event.Stamp(began.Add(2500 * time.Millisecond)), What: "concurrency", From: "64", To: "8", By: "ctl"}}
	_, body := m.HTML()
	m.Earlier = []timeline.Run{{At: began.Add(-2 * time.Second), Start: event.Start{Concurrency: 32}, Samples: []observe.Sample{{At: began, Span: 2}}}}
	_, again := m.HTML()
	if !strings.Contains(again, `-c <b class="v" data-v="32|64||8|"></b>`) {
		t.Errorf("the run before began with 32: %s", again)
	}
	for _, part := range []string{`-c <b class="v" data-v="64||8|"></b>`, "concurrency: 64 → 8, by headrace ctl", `class="mark"`, "calls in flight (-c) 1.0 s (25 %)"} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
}

// The live page has, for its script, when each point of the plots begins, where that is, and all figures in words; a
// figure that repeats is left out. A report has none of it.
func TestMomentIsPointedAt(t *testing.T) {
	m := moment(4)
	m.Samples[2].Answered, m.Samples[3].Latency = 30, nil
	_, body := m.HTML()
	for _, part := range []string{
		`<p id="moments" data-x="56.0|219.5|383.0|546.5" data-t="14:00:00|14:00:01|14:00:02|14:00:03" hidden></p>`,
		`the limit on requests 4.0 s (100 %) <b class="v" data-v="100 %|||"></b></span>`, `ended <b class="v" data-v="10||30|10"></b></span>`,
		`refusals (429) <b class="v" data-v="0|||"></b></span>`, `<b class="v" data-v="$0.01|$0.02|$0.03|$0.04"></b></span>`,
	} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	if !strings.HasSuffix(regexp.MustCompile(`p50 <b class="v" data-v="([^"]*)`).FindString(body), " s|||–") {
		t.Error("a figure that is not known is no dash")
	}
	if text := m.toReport().HTML(); strings.Contains(text, "data-") || strings.Contains(text, `id="moments"`) {
		t.Error("a report has figures for a script")
	}
}

// A run that has ended says that no other state follows, and has the proof of its summary.
func TestLastMoment(t *testing.T) {
	m := moment(6)
	m.Over, m.Summary = true, summary(57, 3)
	m.Summary.ElapsedS = 6
	if _, body := m.HTML(); !strings.Contains(body, "The run has ended: this is its last state.") || !strings.Contains(body, "holds ✓") || strings.Contains(body, "Now:") || strings.Contains(body, "14:07") {
		t.Error(body)
	}
	if _, body := (&Moment{}).HTML(); !strings.Contains(body, "has not begun") {
		t.Error(body)
	}
	if _, body := (&Moment{Over: true}).HTML(); !strings.Contains(body, "ended before its first call") {
		t.Error(body)
	}
}

// No text of others becomes markup on the live page.
func TestHostileMoment(t *testing.T) {
	m := moment(3)
	p := m.Progress
	p.Input, p.Output, p.Provider, p.Models, p.BoundWide, p.EndsShort = evil, evil, evil, []string{evil}, evil, evil
	p.Failures[0] = event.Failure{Kind: evil, Count: 1, Example: observe.Example{ID: evil, Message: evil}}
	p.Lanes[0].Name, p.Lanes[0].Phase, p.Lanes[0].Cause = evil, evil, evil
	_, body := m.HTML()
	for _, bad := range []string{"<script", "<img", "\x00", "\x1b", "\u202e", "http://"} {
		if strings.Contains(body, bad) {
			t.Errorf("it has %q", bad)
		}
	}
}

// Samples keep all that happened in bounded memory, evenly spread, and a page of them is bounded, too.
func TestSamplesAreBounded(t *testing.T) {
	var s Samples
	const seconds = 100_000
	for k := range seconds {
		s.Add(observe.Sample{At: began.Add(time.Duration(k+1) * time.Second), Span: 1, Answered: 1, InFlight: float64(k * 7919 % 31), Latency: observe.Buckets{{Number: k % 9, Count: 1}}})
	}
	list := s.All()
	answered, longest := 0, 0.0
	for _, one := range list {
		answered += one.Answered
		longest = max(longest, one.Span)
	}
	if answered != seconds || len(list) > MostSamples || len(list) < MostSamples/2 || longest != 128 {
		t.Errorf("%d of %d in %d samples of up to %v s", answered, seconds, len(list), longest)
	}
	m := moment(1)
	m.Samples = list
	if _, body := m.HTML(); len(body) > MaxBytes || len(body) < 20_000 {
		t.Errorf("%d bytes", len(body))
	}
}

// A number of an axis has no exponent.
func TestShortNumbers(t *testing.T) {
	for v, want := range map[float64]string{0.25: "0.25", 12: "12", 999: "999", 999.7: "1000", 5000: "5000", 9999: "9999", 15000: "15k", 2e6: "2M", 999_700: "1000k", 999.7e6: "1000M"} {
		if got := fmt.Sprint(shortNumber(v)); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
