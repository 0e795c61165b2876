package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/observe"
)

// A Report holds the figures of an output. Programs read it as JSON; a number that is not known is null.
type Report struct {
	Report    string  `json:"headrace_report"` // the version of its form
	Headrace  string  `json:"headrace"`        // the version that made it
	At        string  `json:"at"`
	State     State   `json:"state"`
	Timeline  bool    `json:"timeline"` // whether there is one: without it all about time and calls is missing
	Verdict   string  `json:"verdict"`  // the outcome in a sentence
	Input     string  `json:"input"`    // of the latest run; "" if that is not known
	Output    string  `json:"output"`
	Errors    string  `json:"errors"`
	Provider  string  `json:"provider"`
	Items     *int    `json:"items"` // of the whole input
	Done      int     `json:"done"`  // items with a result
	Failed    int     `json:"failed"`
	Filtered  int     `json:"filtered"`
	Truncated int     `json:"truncated"` // answers of these runs that were cut off at their max_tokens
	Simulated int     `json:"simulated"`
	Torn      int64   `json:"torn_bytes"` // of a last line that is not whole
	Spent     Spent   `json:"spent"`
	TookS     float64 `json:"took_s"` // of all runs, without the time between them

	Efficiency *float64 `json:"efficiency"` // of the latest run: items answered, of those that the limits would have let through
	Calls      int      `json:"calls"`
	Throttled  int      `json:"throttled"`
	Cooldowns  int      `json:"cooldowns"`

	Bounds   []Bound         `json:"bounds"` // what held the runs back, the largest part first
	Failures []Failure       `json:"failures"`
	Waits    []Wait          `json:"waits"`
	Models   []Model         `json:"models"`
	Lanes    []Lane          `json:"lanes,omitempty"` // if there are several
	Runs     []Run           `json:"runs"`
	OfRuns   int             `json:"of_runs"`           // in all: more than mostRuns are not listed
	Changes  []event.Changed `json:"changes,omitempty"` // by headrace ctl, while runs went on
	Settings []event.Setting `json:"settings"`
	Proof    []string        `json:"proof"`  // of the latest run; none: it has not ended
	Proved   *bool           `json:"proved"` // null: no run has ended
	Job      *Job            `json:"job,omitempty"`

	concurrency int
	bare        bool // without the reasons of providers
	zone        *time.Location
	runs        []timeline.Run
	moreModels  int // beyond Models
}

// version is that of the form of a Report. A minor version adds fields.
const version = "1.0"

// A State is what became of the latest run.
type State string

// The states.
const (
	Ended   State = "ended"
	Running State = "running"
	Killed  State = "killed"
)

// Spent sums up the cost of all items.
type Spent struct {
	USD          *float64 `json:"usd"` // null: nothing of it has a price
	Words        string   `json:"words"`
	FailedUSD    float64  `json:"failed_usd"`  // part of USD: items that failed
	EarlierUSD   float64  `json:"earlier_usd"` // part of USD: earlier tries
	Unpriced     int      `json:"unpriced"`
	CapUSD       *float64 `json:"cap_usd"` // of the latest run
	InputTokens  int64    `json:"input_tokens"`
	CachedTokens int64    `json:"cached_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	Doubtful     string   `json:"doubtful,omitempty"`
}

// Bound is a thing that held the runs back.
type Bound struct {
	Bound   string  `json:"bound"`
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
}

// Failure is a kind of failure.
type Failure struct {
	Kind     string    `json:"kind"`
	Items    int       `json:"items"`
	Examples []Example `json:"examples"`
}

// Example is an item that failed.
type Example struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line"`
	ID      string `json:"id"`
	Message string `json:"message"`
}

// Wait is the time of items, by the place in which it went.
type Wait struct {
	What string  `json:"what"`
	P50S float64 `json:"p50_s"`
	P95S float64 `json:"p95_s"`
	SumS float64 `json:"sum_s"`
}

// Model sums up the use of the items of a model.
type Model struct {
	Model        string  `json:"model"`
	Items        int     `json:"items"`
	Failed       int     `json:"failed"` // of these
	InputTokens  int64   `json:"input_tokens"`
	CachedTokens int64   `json:"cached_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
	Priced       int     `json:"priced"`
	Unpriced     int     `json:"unpriced"`
}

// Lane sums up the cost of the items of a lane.
type Lane struct {
	Lane     string  `json:"lane"`
	USD      float64 `json:"usd"`
	Priced   int     `json:"priced"`
	Unpriced int     `json:"unpriced"`
}

// Run is one of the runs.
type Run struct {
	Runs      int     `json:"runs"` // that it stands for: 1, but for the oldest of very many
	Began     string  `json:"began"`
	Ended     string  `json:"ended"`
	TookS     float64 `json:"took_s"`
	Answered  int     `json:"answered"`
	Failed    int     `json:"failed"`
	Calls     int     `json:"calls"`
	Throttled int     `json:"throttled"`
	How       string  `json:"how"` // it ended
	ExitCode  *int    `json:"exit_code"`
}

// Bounds of the lists in a report, so that it has a length that people read.
const (
	mostFailures = 12
	mostExamples = 3
	mostModels   = 20
	mostLanes    = 20
	mostRuns     = 30
	mostChanges  = 60 // the latest
	mostSettings = 60
	maxMessage   = 160 // runes of a message
	maxName      = 80  // runes of an id, a name, a value
)

// facts are what a report is made of.
type facts struct {
	output, errors string
	timeline       string // its path; "" if there is none
	state          State
	now            time.Time
	zone           *time.Location
	version        string
}

// newReport reads the files of an output. The errors are those of its journal and of its timeline.
func newReport(f facts) (*Report, error) {
	r := &Report{Report: version, Headrace: f.version, At: event.Stamp(f.now), State: f.state, Output: f.output, Errors: f.errors, zone: f.zone}
	var runs []timeline.Run
	if f.timeline != "" {
		var err error
		if runs, err = timeline.ReadRuns(f.timeline); err != nil && !errors.Is(err, timeline.ErrNone) {
			return nil, err
		}
	}
	items := newTallies()
	p, err := journal.ReadItems(f.output, f.errors, items.take)
	if err != nil {
		return nil, err
	}
	r.addItems(p, items)
	r.addRuns(runs)
	r.addSpent(p)
	r.Verdict = r.verdict()
	return r, nil
}

// tallies sums up what journal.Progress does not.
type tallies struct {
	models                map[string]*Model
	examples              map[string][]Example
	queued, waited, taken spread
}

func newTallies() *tallies {
	return &tallies{models: map[string]*Model{}, examples: map[string][]Example{}}
}

func (t *tallies) take(i *journal.Item) {
	t.queued.add(i.QueuedMS)
	t.waited.add(i.WaitedMS)
	t.taken.add(i.LatencyMS)
	t.addModel(i)
	if i.Failed {
		t.addExample(i)
	}
}

// mostNames bounds the models that are kept apart while the files are read.
const mostNames = 1000

func (t *tallies) addModel(i *journal.Item) {
	m := t.models[i.Model]
	if m == nil {
		if len(t.models) >= mostNames {
			return
		}
		m = &Model{Model: i.Model}
		t.models[i.Model] = m
	}
	m.Items++
	if i.Failed {
		m.Failed++
	}
	m.InputTokens += i.Usage.InputTokens
	m.CachedTokens += i.Usage.CachedTokens
	m.OutputTokens += i.Usage.OutputTokens
	switch {
	case i.CostUSD != nil:
		m.USD += *i.CostUSD
		m.Priced++
	case !i.Failed || i.Usage != (journal.Usage{}):
		m.Unpriced++
	}
}

func (t *tallies) addExample(i *journal.Item) {
	list, known := t.examples[i.Code]
	if len(list) >= mostExamples || !known && len(t.examples) >= mostNames {
		return
	}
	var l journal.Line
	if json.Unmarshal(i.Text, &l) != nil || l.Error == nil {
		return
	}
	e := Example{File: words.Clip(l.Headrace.File, maxName), Line: l.Headrace.Line, ID: words.Clip(l.CustomID, maxName), Message: words.Clip(l.Error.Message, maxMessage)}
	if e.File != "" {
		e.Line = l.Headrace.FileLine
	}
	t.examples[i.Code] = append(list, e)
}

// spread counts times in the buckets of the observer, so that a quantile is off by 5 % at most.
type spread struct {
	counts map[int]int
	zeros  int // times of no length, which have no bucket
	sum    int64
	n      int
}

func (s *spread) add(ms int64) {
	s.n++
	s.sum += ms
	if ms <= 0 {
		s.zeros++
		return
	}
	if s.counts == nil {
		s.counts = map[int]int{}
	}
	s.counts[observe.BucketOf(time.Duration(ms)*time.Millisecond)]++
}

// quantile returns the time under which the share q lies, in seconds.
func (s *spread) quantile(q float64) float64 {
	if s.n == 0 || q*float64(s.n) <= float64(s.zeros) {
		return 0
	}
	var b observe.Buckets
	for _, k := range slices.Sorted(maps.Keys(s.counts)) {
		b = append(b, observe.Bucket{Number: k, Count: s.counts[k]})
	}
	above := float64(s.n - s.zeros)
	return event.Round(b.Quantile((q*float64(s.n) - float64(s.zeros)) / above).Seconds())
}

func (r *Report) addItems(p *journal.Progress, t *tallies) {
	r.Done, r.Failed, r.Filtered, r.Simulated, r.Torn = p.Done, p.Failed, p.Filtered, p.Simulated, p.Torn
	kinds := byCount(p.Failures)
	for _, kind := range kinds[:min(len(kinds), mostFailures)] {
		r.Failures = append(r.Failures, Failure{Kind: words.Clip(kind, maxName), Items: p.Failures[kind], Examples: t.examples[kind]})
	}
	for _, w := range []struct {
		what string
		of   *spread
	}{{"waited for its first call", &t.queued}, {"between calls, refused or broken", &t.waited}, {"in its last call", &t.taken}} {
		if w.of.n > 0 {
			r.Waits = append(r.Waits, Wait{w.what, w.of.quantile(0.5), w.of.quantile(0.95), float64(w.of.sum) / 1e3})
		}
	}
	models := slices.SortedFunc(maps.Values(t.models), func(a, b *Model) int {
		return cmp.Or(cmp.Compare(b.USD, a.USD), cmp.Compare(b.Items, a.Items), cmp.Compare(a.Model, b.Model))
	})
	r.moreModels = max(0, len(models)-mostModels)
	for _, m := range models[:min(len(models), mostModels)] {
		m.Model = words.Clip(m.Model, maxName)
		r.Models = append(r.Models, *m)
	}
	if len(p.Lanes) < 2 {
		return
	}
	lanes := slices.SortedFunc(maps.Keys(p.Lanes), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.Lanes[b].USD, p.Lanes[a].USD), cmp.Compare(a, b))
	})
	for _, name := range lanes[:min(len(lanes), mostLanes)] {
		l := p.Lanes[name]
		r.Lanes = append(r.Lanes, Lane{words.Clip(name, maxName), l.USD, l.Priced, l.Unpriced})
	}
}

// byCount returns names, the most frequent first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// addSpent says what the items have cost, in the words of headrace status.
func (r *Report) addSpent(p *journal.Progress) {
	s := &r.Spent
	s.InputTokens, s.CachedTokens, s.OutputTokens = p.Usage.InputTokens+p.Lost.InputTokens, p.Usage.CachedTokens+p.Lost.CachedTokens, p.Usage.OutputTokens+p.Lost.OutputTokens
	s.FailedUSD, s.EarlierUSD, s.Unpriced = p.FailedUSD, p.AgainUSD, p.Unpriced
	if p.Priced > 0 || p.CostUSD > 0 { // earlier tries may have a price where the latest have none
		s.USD = &p.CostUSD
	}
	s.Words = words.Cost(p.CostUSD, s.USD != nil, p.Unpriced)
	if s.USD == nil && p.Simulated > 0 && p.Simulated == p.Done+p.Failed {
		s.Words = "none (simulated)"
	}
	s.Doubtful = words.Doubtful(int(p.Doubtful.Calls), p.Doubtful.InputTokens, p.Doubtful.OutputTokens)
}

// addRuns adds what the timeline says. A run that has ended is described by its summary, any other by its samples.
func (r *Report) addRuns(runs []timeline.Run) {
	if len(runs) == 0 {
		return
	}
	r.Timeline, r.OfRuns, r.runs = true, 0, runs
	bounds := map[string]float64{}
	for k := range runs {
		of := &runs[k]
		one := r.runOf(of, k == len(runs)-1, bounds)
		r.OfRuns += of.Merged
		r.TookS += one.TookS
		r.Calls += one.Calls
		r.Throttled += one.Throttled
		r.Runs = append(r.Runs, one)
		switch {
		case of.Summary != nil:
			r.Truncated += of.Summary.Truncated
			r.Cooldowns += int(of.Summary.Cooldowns)
		case of.Progress != nil:
			r.Truncated += of.Progress.Truncated
			r.Cooldowns += of.Progress.Cooldowns
		}
	}
	r.Runs = r.Runs[max(0, len(r.Runs)-mostRuns):]
	for k := range runs {
		r.Changes = append(r.Changes, runs[k].Changes...)
	}
	r.Changes = r.Changes[max(0, len(r.Changes)-mostChanges):]
	r.addLatest(&runs[len(runs)-1])
	for _, word := range slices.SortedFunc(maps.Keys(bounds), func(a, b string) int {
		return cmp.Or(cmp.Compare(bounds[b], bounds[a]), cmp.Compare(a, b))
	}) {
		b := Bound{Bound: word, Name: event.BoundName(word, r.ceiling()), Seconds: event.Round(bounds[word])}
		if r.TookS > 0 {
			b.Share = bounds[word] / r.TookS
		}
		r.Bounds = append(r.Bounds, b)
	}
	r.TookS = event.Round(r.TookS)
}

// changedAt returns the moments of the changes.
func (r *Report) changedAt() (all []time.Time) {
	for _, c := range r.Changes {
		if at, err := time.Parse(time.RFC3339Nano, c.At); err == nil {
			all = append(all, at)
		}
	}
	return all
}

// addLatest adds what only the latest run says.
func (r *Report) addLatest(last *timeline.Run) {
	r.Input, r.concurrency = last.Start.Input, last.Start.Concurrency
	r.Items = last.Start.Items
	r.Settings = last.Start.Settings[:min(len(last.Start.Settings), mostSettings)]
	if p := last.Progress; p != nil {
		r.Provider, r.Input = p.Provider, cmp.Or(r.Input, p.Input)
		r.Efficiency = p.Efficiency
		if p.Total != nil {
			r.Items = p.Total
		}
		if p.Spent.Budget != nil {
			r.Spent.CapUSD = &p.Spent.Budget.CapUSD
		}
	}
	if s := last.Summary; s != nil {
		r.Efficiency, r.Proof, r.Proved = s.Efficiency, progress.ProofOf(s), &s.Proved
	}
	if r.Items != nil && *r.Items < r.Done+r.Failed { // the output has answers to other questions, too
		r.Items = nil
	}
}

// runOf describes a run, and adds its time to the bounds.
func (r *Report) runOf(of *timeline.Run, last bool, bounds map[string]float64) Run {
	one := Run{Runs: of.Merged, Began: event.Stamp(of.At), Ended: event.Stamp(of.Ended()), How: r.howEnded(of, last)}
	var ledger observe.Ledger
	for k := range of.Samples {
		s := &of.Samples[k]
		one.TookS += s.Span
		one.Answered += s.Answered
		one.Failed += s.Failed
		one.Calls += s.Calls
		one.Throttled += s.Throttled
		for b, d := range s.Bounds {
			ledger[b] += d
		}
	}
	seconds := event.Seconds(ledger)
	if s := of.Summary; s != nil && of.Merged == 1 {
		one.TookS, one.Answered, one.Failed, one.Calls, one.Throttled = s.ElapsedS, s.Succeeded, s.Failed, int(s.Calls), int(s.Throttled)
		one.ExitCode, seconds = &s.ExitCode, s.BoundS
	}
	for word, s := range seconds {
		bounds[word] += s
	}
	one.TookS = event.Round(one.TookS)
	return one
}

// howEnded says how a run ended.
func (r *Report) howEnded(of *timeline.Run, last bool) string {
	s := of.Summary
	switch {
	case of.Merged > 1:
		return words.Count(of.Merged, "old run") + " together"
	case s == nil && of.Over:
		return "ended"
	case s == nil && last && r.State == Running:
		return "goes on"
	case s == nil:
		return "was killed, or its machine went down"
	case s.ExitCode == 0:
		return "every item succeeded"
	case s.ExitCode == 1:
		return "went through the input; some items failed"
	case s.ExitCode == 3:
		if r.bare {
			return "stopped by the provider"
		}
		return "stopped by the provider" + because(s.Stopped)
	case s.ExitCode == 4:
		return "stopped by a limit of yours"
	case s.ExitCode == 5:
		return "the output could not be written"
	case s.ExitCode == 130:
		return "interrupted"
	}
	return "ended with exit code " + words.Number(s.ExitCode)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + words.Clip(printable.Line(reason), maxMessage)
}

// verdict says in a sentence what became of the items.
func (r *Report) verdict() string {
	number := words.Number
	text := number(r.Done) + words.OneOr(r.Done, " item", " items") + " answered"
	switch {
	case r.Items != nil && *r.Items == r.Done && r.Done > 1:
		text = "All " + number(r.Done) + " items answered"
	case r.Items != nil:
		text = number(r.Done) + " of " + number(*r.Items) + words.OneOr(*r.Items, " item", " items") + " answered"
	}
	if r.Failed > 0 {
		text += ", " + number(r.Failed) + " failed"
	}
	return text
}
