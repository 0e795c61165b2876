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

// newReport makes a report from the files of an output. Its errors are those of the journal and of the
// timeline.
func newReport(source facts) (*Report, error) {
	report := &Report{Report: version, Headrace: source.version, At: event.Stamp(source.now), State: source.state, Output: source.output, Errors: source.errors, zone: source.zone}
	var runs []timeline.Run
	if source.timeline != "" {
		var err error
		if runs, err = timeline.ReadRuns(source.timeline); err != nil && !errors.Is(err, timeline.ErrNone) {
			return nil, err
		}
	}
	tallies := newTallies()
	progress, err := journal.ReadItems(source.output, source.errors, tallies.add)
	if err != nil {
		return nil, err
	}
	report.addItems(progress, tallies)
	report.addRuns(runs)
	report.addSpent(progress)
	report.Verdict = report.verdict()
	return report, nil
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

// add counts an item that has ended.
func (t *tallies) add(item *journal.Item) {
	t.queued.add(item.QueuedMS)
	t.waited.add(item.WaitedMS)
	t.taken.add(item.LatencyMS)
	t.addModel(item)
	if item.Failed {
		t.addExample(item)
	}
}

// mostNames bounds the models that are kept apart while the files are read.
const mostNames = 1000

// addModel counts an item and its cost for its model. Models beyond mostNames are not counted.
func (t *tallies) addModel(item *journal.Item) {
	model := t.models[item.Model]
	if model == nil {
		if len(t.models) >= mostNames {
			return
		}
		model = &Model{Model: item.Model}
		t.models[item.Model] = model
	}
	model.Items++
	if item.Failed {
		model.Failed++
	}
	model.InputTokens += item.Usage.InputTokens
	model.CachedTokens += item.Usage.CachedTokens
	model.OutputTokens += item.Usage.OutputTokens
	switch {
	case item.CostUSD != nil:
		model.USD += *item.CostUSD
		model.Priced++
	case !item.Failed || item.Usage != (journal.Usage{}):
		model.Unpriced++
	}
}

// addExample keeps a failed item as an example of its kind of failure, if more examples are wanted.
func (t *tallies) addExample(item *journal.Item) {
	list, known := t.examples[item.Code]
	if len(list) >= mostExamples || !known && len(t.examples) >= mostNames {
		return
	}
	var line journal.Line
	if json.Unmarshal(item.Text, &line) != nil || line.Error == nil {
		return
	}
	example := Example{File: words.Clip(line.Headrace.File, maxName), Line: line.Headrace.Line, ID: words.Clip(line.CustomID, maxName), Message: words.Clip(line.Error.Message, maxMessage)}
	if example.File != "" {
		example.Line = line.Headrace.FileLine
	}
	t.examples[item.Code] = append(list, example)
}

// spread counts times in the buckets of the observer, so that a quantile is off by 5 % at most.
type spread struct {
	counts map[int]int
	zeros  int // times of no length, which have no bucket
	sum    int64
	n      int
}

// add counts a time in milliseconds.
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

// quantile returns the time, in seconds, below which that share of all times lies.
func (s *spread) quantile(share float64) float64 {
	if s.n == 0 || share*float64(s.n) <= float64(s.zeros) {
		return 0
	}
	var buckets observe.Buckets
	for _, k := range slices.Sorted(maps.Keys(s.counts)) {
		buckets = append(buckets, observe.Bucket{Number: k, Count: s.counts[k]})
	}
	nonZero := float64(s.n - s.zeros)
	return event.Round(buckets.Quantile((share*float64(s.n) - float64(s.zeros)) / nonZero).Seconds())
}

// addItems adds the items, their failures, waits, models and lanes, each list at most as long as people read.
func (r *Report) addItems(progress *journal.Progress, items *tallies) {
	r.Done, r.Failed, r.Filtered, r.Simulated, r.Torn = progress.Done, progress.Failed, progress.Filtered, progress.Simulated, progress.Torn
	kinds := byCount(progress.Failures)
	for _, kind := range kinds[:min(len(kinds), mostFailures)] {
		r.Failures = append(r.Failures, Failure{Kind: words.Clip(kind, maxName), Items: progress.Failures[kind], Examples: items.examples[kind]})
	}
	for _, w := range []struct {
		what string
		of   *spread
	}{{"waited for its first call", &items.queued}, {"between calls, refused or broken", &items.waited}, {"in its last call", &items.taken}} {
		if w.of.n > 0 {
			r.Waits = append(r.Waits, Wait{w.what, w.of.quantile(0.5), w.of.quantile(0.95), float64(w.of.sum) / 1e3})
		}
	}
	models := slices.SortedFunc(maps.Values(items.models), func(a, b *Model) int {
		return cmp.Or(cmp.Compare(b.USD, a.USD), cmp.Compare(b.Items, a.Items), cmp.Compare(a.Model, b.Model))
	})
	r.moreModels = max(0, len(models)-mostModels)
	for _, m := range models[:min(len(models), mostModels)] {
		m.Model = words.Clip(m.Model, maxName)
		r.Models = append(r.Models, *m)
	}
	if len(progress.Lanes) < 2 {
		return
	}
	lanes := slices.SortedFunc(maps.Keys(progress.Lanes), func(a, b string) int {
		return cmp.Or(cmp.Compare(progress.Lanes[b].USD, progress.Lanes[a].USD), cmp.Compare(a, b))
	})
	for _, name := range lanes[:min(len(lanes), mostLanes)] {
		l := progress.Lanes[name]
		r.Lanes = append(r.Lanes, Lane{words.Clip(name, maxName), l.USD, l.Priced, l.Unpriced})
	}
}

// byCount returns names, the most frequent first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// addSpent adds the cost of the items, in the words of headrace status.
func (r *Report) addSpent(progress *journal.Progress) {
	spent := &r.Spent
	spent.InputTokens, spent.CachedTokens, spent.OutputTokens = progress.Usage.InputTokens+progress.Lost.InputTokens, progress.Usage.CachedTokens+progress.Lost.CachedTokens, progress.Usage.OutputTokens+progress.Lost.OutputTokens
	spent.FailedUSD, spent.EarlierUSD, spent.Unpriced = progress.FailedUSD, progress.AgainUSD, progress.Unpriced
	if progress.Priced > 0 || progress.CostUSD > 0 { // earlier tries may have a price where the latest have none
		spent.USD = &progress.CostUSD
	}
	spent.Words = words.Cost(progress.CostUSD, spent.USD != nil, progress.Unpriced)
	if spent.USD == nil && progress.Simulated > 0 && progress.Simulated == progress.Done+progress.Failed {
		spent.Words = "none (simulated)"
	}
	spent.Doubtful = words.Doubtful(int(progress.Doubtful.Calls), progress.Doubtful.InputTokens, progress.Doubtful.OutputTokens)
}

// addRuns adds the figures of the timeline. A run that has ended is described by its summary, any other by
// its samples.
func (r *Report) addRuns(runs []timeline.Run) {
	if len(runs) == 0 {
		return
	}
	r.Timeline, r.OfRuns, r.runs = true, 0, runs
	bounds := map[string]float64{}
	for k := range runs {
		run := &runs[k]
		summary := r.describeRun(run, k == len(runs)-1, bounds)
		r.OfRuns += run.Merged
		r.TookS += summary.TookS
		r.Calls += summary.Calls
		r.Throttled += summary.Throttled
		r.Runs = append(r.Runs, summary)
		switch {
		case run.Summary != nil:
			r.Truncated += run.Summary.Truncated
			r.Cooldowns += int(run.Summary.Cooldowns)
		case run.Progress != nil:
			r.Truncated += run.Progress.Truncated
			r.Cooldowns += run.Progress.Cooldowns
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
		bound := Bound{Bound: word, Name: event.BoundName(word, r.sharedConcurrency()), Seconds: event.Round(bounds[word])}
		if r.TookS > 0 {
			bound.Share = bounds[word] / r.TookS
		}
		r.Bounds = append(r.Bounds, bound)
	}
	r.TookS = event.Round(r.TookS)
}

// changedAt returns the times at which headrace ctl has changed something.
func (r *Report) changedAt() (all []time.Time) {
	for _, c := range r.Changes {
		if at, err := time.Parse(time.RFC3339Nano, c.At); err == nil {
			all = append(all, at)
		}
	}
	return all
}

// addLatest adds the figures that only the latest run has.
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
	if summary := last.Summary; summary != nil {
		r.Efficiency, r.Proof, r.Proved = summary.Efficiency, progress.ProofOf(summary), &summary.Proved
	}
	if r.Items != nil && *r.Items < r.Done+r.Failed { // the output has answers to other questions, too
		r.Items = nil
	}
}

// describeRun returns the row of a run, and adds the run's time to the bounds.
func (r *Report) describeRun(run *timeline.Run, isLatest bool, bounds map[string]float64) Run {
	described := Run{Runs: run.Merged, Began: event.Stamp(run.At), Ended: event.Stamp(run.Ended()), How: r.howEnded(run, isLatest)}
	var ledger observe.Ledger
	for k := range run.Samples {
		sample := &run.Samples[k]
		described.TookS += sample.Span
		described.Answered += sample.Answered
		described.Failed += sample.Failed
		described.Calls += sample.Calls
		described.Throttled += sample.Throttled
		for b, d := range sample.Bounds {
			ledger[b] += d
		}
	}
	seconds := event.Seconds(ledger)
	if summary := run.Summary; summary != nil && run.Merged == 1 {
		described.TookS, described.Answered, described.Failed, described.Calls, described.Throttled = summary.ElapsedS, summary.Succeeded, summary.Failed, int(summary.Calls), int(summary.Throttled)
		described.ExitCode, seconds = &summary.ExitCode, summary.BoundS
	}
	for word, held := range seconds {
		bounds[word] += held
	}
	described.TookS = event.Round(described.TookS)
	return described
}

// howEnded describes how a run has ended.
func (r *Report) howEnded(run *timeline.Run, isLatest bool) string {
	summary := run.Summary
	switch {
	case run.Merged > 1:
		return words.Count(run.Merged, "old run") + " together"
	case summary == nil && run.Over:
		return "ended"
	case summary == nil && isLatest && r.State == Running:
		return "goes on"
	case summary == nil:
		return "was killed, or its machine went down"
	case summary.ExitCode == 0:
		return "every item succeeded"
	case summary.ExitCode == 1:
		return "went through the input; some items failed"
	case summary.ExitCode == 3:
		if r.bare {
			return "stopped by the provider"
		}
		return "stopped by the provider" + becauseText(summary.Stopped)
	case summary.ExitCode == 4:
		return "stopped by a limit of yours"
	case summary.ExitCode == 5:
		return "the output could not be written"
	case summary.ExitCode == 130:
		return "interrupted"
	}
	return "ended with exit code " + words.Number(summary.ExitCode)
}

func becauseText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + words.Clip(printable.Line(reason), maxMessage)
}

// verdict returns a sentence about how many items were answered and how many failed.
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
