package progress

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider/sim"
)

// Report is the outcome of a run, for people and for programs.
type Report struct {
	batch.Summary
	Before         int                 // items that earlier runs have ended
	BeforeUnknown  int                 // of these, those of no known cost, if there is a budget
	Left           int                 // items that are still to do
	Of             int                 // items of the whole input; 0: that is not known
	Skipped        int                 // bad lines of the input
	Untranslatable int                 // lines of the input that the provider's dialect cannot express
	Renamed        int                 // items whose id was taken in the output
	Unsaved        int                 // of the ended items, those that could not be kept
	Truncated      int                 // of the succeeded items, those cut off at their max_tokens
	Spent          event.Spent         // of this run
	FailedUSD      float64             // part of it: the items that failed
	Kinds          map[string]int      // the number of failed items by kind
	BreakerOpened  int                 // how often a breaker opened
	Broke          string              // why calls broke, the latest time
	Stopped        string              // why the provider no longer serves some items; "" if it serves all
	Stops          []event.StoppedLane // the lanes of a file that stopped
	Results        string              // name of the output; "" if it is no file, or there are none
	Reading        string              // a command that shows its contents
	ErrorsFile     string              // its name
	Books          *sim.Books          // the simulated provider's own; nil for a real one

	At         time.Time      // when the run ended
	Lanes      []observe.Lane // what each has spent
	Bounds     observe.Ledger // the run's time, by what held it back
	Efficiency *float64       // of what the limits allowed; nil: that is not known
	ExitCode   int
	Verbose    bool   // whether people also see the waits and the proof
	Resume     string // the command that continues from here; "" if there is none
}

// text returns the report for people; "" if there was nothing to do. A clean run has at most six lines, the last of
// which shows its results. Verbose adds the waits and the proof; a proof that does not hold is always shown.
func (s *Report) text() string {
	if s.Items() == 0 && s.Left == 0 && s.Skipped == 0 && s.Untranslatable == 0 && s.Unsaved == 0 && s.Counters == (batch.Counters{}) {
		return ""
	}
	var b strings.Builder
	row := func(name string, value any, more ...string) {
		if n, is := value.(int); is {
			value = words.Number(n)
		}
		fmt.Fprintf(&b, "%-14s %v%s\n", name, value, printable.Line(strings.Join(append([]string{""}, more...), "  ")))
	}
	fmt.Fprintln(&b)
	row("items", s.answeredWords(), s.markedWords()...)
	row("failed", s.Failed, s.kindWords()...)
	s.faultRows(row)
	row("time", s.timeWords())
	row("cost", s.costWords())
	s.laneRows(row)
	if m := s.Money; m.Cap > 0 {
		row("budget", words.Budget(m, s.BeforeUnknown))
	}
	if d := s.Spent.Doubtful; d.Calls > 0 {
		row("doubtful", words.Doubtful(d.Calls, d.InputTokens, d.OutputTokens))
	}
	if s.Verbose {
		s.detailRows(row)
	}
	if proof := s.proof(); s.Verbose || strings.Contains(proof, broken) {
		b.WriteString("proof\n" + proof)
	}
	switch {
	case s.Results == "":
	case s.Left == 0 && s.Unsaved == 0 && s.Succeeded > 0:
		row("results", printable.Line(s.Results)+"; to read them:")
		b.WriteString("  " + printable.Line(s.Reading) + "\n")
	default:
		row("results", printable.Line(s.Results))
	}
	return b.String()
}

// faultRows adds rows for all that a clean run does not have.
func (s *Report) faultRows(row func(name string, value any, more ...string)) {
	if s.Left > 0 {
		row("not run", s.Left)
	}
	if s.Unsaved > 0 {
		row("not saved", s.Unsaved, "(their answers are lost)")
	}
	if s.Skipped > 0 {
		row("bad lines", s.Skipped, "(skipped; see "+s.ErrorsFile+")")
	}
	if s.Untranslatable > 0 {
		row("untranslatable", s.Untranslatable, "(skipped; see "+s.ErrorsFile+")")
	}
	if s.Renamed > 0 {
		row("renamed", s.Renamed, "(the output has their ids for other questions: theirs got a suffix)")
	}
	if n := s.BreakerOpened; n > 0 {
		row("breaker opened", n, "latest: "+s.Broke)
	}
	if s.Stopped != "" {
		row("stopped", printable.Line(s.Stopped))
	}
	s.stopRows(row)
}

// stopRows adds a row for each stopped lane, with the reason and what to do. Lanes of one account share a row.
func (s *Report) stopRows(row func(name string, value any, more ...string)) {
	all := event.ByAccount(s.Stops)
	for _, stop := range all[:min(len(all), mostLaneRows)] {
		if stop.Account == "" {
			row("lane", printable.Line(stop.Lane)+" has stopped:", stop.Words())
			continue
		}
		row("account", printable.Line(stop.Account)+" has stopped:", stop.Lane+": "+stop.Words())
	}
	if more := len(all) - mostLaneRows; more > 0 {
		row("lane", words.Count(more, "more")+words.OneOr(more, " has stopped", " have stopped"))
	}
}

// detailRows adds rows about the calls, and about items that waited or were given out again.
func (s *Report) detailRows(row func(name string, value any, more ...string)) {
	c := s.Counters
	row("calls", c.Calls)
	row("throttled", c.Throttled)
	if c.Cooldowns == 0 {
		row("cooldowns", c.Cooldowns)
	} else {
		met := "met by " + words.Count(int(c.Participants), "call")
		if c.Participants > 1 {
			met += " together"
		}
		row("cooldowns", c.Cooldowns, met)
	}
	row("probes", c.Probes)
	row("redistributed", c.Redistributed)
	for _, r := range []struct {
		name  string
		count uint64
		words string
	}{
		{"parked", c.Parked, fmt.Sprintf("%s an item waited behind a refusal, %d given out again", nounFor(c.Parked, "time"), c.Redistributed)},
		{"delayed", c.Delayed, nounFor(c.Delayed, "time") + " an item waited alone: its call failed, or only it was refused"},
		{"stragglers", c.Stragglers, "of the throttled calls had left before the cooldown"},
	} {
		if r.count > 0 { // most runs have none
			row(r.name, r.count, r.words)
		}
	}
	if s.Books != nil {
		row("simulator saw", fmt.Sprintf("%s, answered %d, refused %d", words.Count(s.Books.Received, "call"), s.Books.Accepted, s.Books.Refused429))
	}
}

// answeredWords returns how many of the items were answered, and how many ended in earlier runs.
func (s *Report) answeredWords() string {
	before := ""
	if s.Before > 0 {
		before = fmt.Sprintf(", and %s ended in earlier runs", words.Number(s.Before))
	}
	if all := s.Succeeded + s.Failed + s.Left; all > s.Succeeded {
		return fmt.Sprintf("%s of %s answered%s", words.Number(s.Succeeded), words.Number(all), before)
	}
	return words.Number(s.Succeeded) + " answered" + before
}

// timeWords says how long the run took, how fast it was, and how many calls it made.
func (s *Report) timeWords() string {
	c, text := s.Counters, words.Lasted(s.Elapsed)
	if s.Elapsed > 0 {
		text += fmt.Sprintf(", %.1f items/s", float64(s.Succeeded+s.Failed)/s.Elapsed.Seconds())
	}
	text += fmt.Sprintf(", %s %s", words.Number(int(c.Calls)), nounFor(c.Calls, "call"))
	switch {
	case c.Calls == 0:
		return text
	case c.Throttled == 0:
		return text + ", none refused by a rate limit"
	}
	return text + fmt.Sprintf(", %s refused by a rate limit", words.Number(int(c.Throttled)))
}

// proof returns three sums that hold if the run lost nothing, gave nothing out twice, and accounts for all its time.
func (s *Report) proof() string {
	c := s.Counters
	items := c.Offered == c.Settled+c.Released && c.Offered == uint64(s.Items())
	calls := c.Calls == c.Settled+c.HandedOver
	return fmt.Sprintf("  offered %d = settled %d + released %d  %s\n", c.Offered, c.Settled, c.Released, holds(items)) +
		fmt.Sprintf("  calls %d = settled %d + handed over %d  %s\n", c.Calls, c.Settled, c.HandedOver, holds(calls)) + s.timeProof()
}

// ProofOf returns the proof of a run from its summary event. Each sum is a line, as in the run's last lines.
func ProofOf(e *event.Summary) []string {
	s := Report{Summary: batch.Summary{Succeeded: e.Succeeded, Failed: e.Failed, NotRun: e.NotRun}}
	s.Counters = batch.Counters{Offered: e.Offered, Settled: e.Settled, Released: e.Released, Calls: e.Calls, HandedOver: e.HandedOver}
	for word, seconds := range e.BoundS {
		if by := limiter.ParseBound(word); int(by) < len(s.Bounds) {
			s.Bounds[by] += time.Duration(math.Round(seconds * float64(time.Second)))
		}
	}
	s.Ran = s.Bounds.Sum() // the event has rounded the parts
	return strings.Split(strings.TrimSuffix(s.proof(), "\n"), "\n")
}

// timeProof shows that the parts of the run's time add up, the largest part first; "" if there was none. Parts too
// small to be seen are only in the sum.
func (s *Report) timeProof() string {
	if s.Ran <= 0 {
		return ""
	}
	var (
		bounds []limiter.Bound
		parts  []string
	)
	for k, d := range s.Bounds {
		if d != 0 {
			bounds = append(bounds, limiter.Bound(k))
		}
	}
	slices.SortFunc(bounds, func(a, b limiter.Bound) int {
		return cmp.Or(cmp.Compare(s.Bounds[b], s.Bounds[a]), cmp.Compare(a.String(), b.String()))
	})
	for i, b := range bounds {
		if d := s.Bounds[b]; i == 0 || d >= s.smallestTime()/2 {
			name := cmp.Or(strings.ReplaceAll(b.String(), "_", " "), "nothing")
			parts = append(parts, name+" "+s.shownTime(d))
		}
	}
	return fmt.Sprintf("  time %s s = %s  %s\n", s.shownTime(s.Ran), strings.Join(parts, " + "), holds(s.Bounds.Sum() == s.Ran))
}

// detailedRun is the length of a run from which on milliseconds are not worth showing.
const detailedRun = 100 * time.Second

// smallestTime is the smallest time that the proof shows.
func (s *Report) smallestTime() time.Duration {
	if s.Ran < detailedRun {
		return time.Millisecond
	}
	return 100 * time.Millisecond
}

// shownTime is a time in seconds, with commas at the thousands.
func (s *Report) shownTime(d time.Duration) string {
	d = d.Round(s.smallestTime())
	whole, rest := words.Number(int(d/time.Second)), d%time.Second
	if s.smallestTime() == time.Millisecond {
		return fmt.Sprintf("%s.%03d", whole, rest/time.Millisecond)
	}
	return fmt.Sprintf("%s.%d", whole, rest/(100*time.Millisecond))
}

// broken marks a sum in the proof that does not hold.
const broken = "DOES NOT HOLD"

func holds(ok bool) string {
	if ok {
		return "✓"
	}
	return broken + " (this is a fault of headrace: please report it)"
}

// costWords returns the cost and the tokens of this run. Simulated answers cost nothing, unless the user gave them a
// price.
func (s *Report) costWords() string {
	text := ""
	switch usd := s.Spent.USD; {
	case usd != nil:
		text = words.Cost(*usd, true, s.Spent.Unpriced)
	case s.Books != nil:
		text = "none (simulated)"
	default:
		text = words.Cost(0, false, s.Spent.Unpriced)
	}
	in, out := s.Usage.InputTokens, s.Usage.OutputTokens
	text += fmt.Sprintf(", %s %s in, %s out", words.Number(int(in)), nounFor(uint64(in), "token"), words.Number(int(out)))
	if s.Usage.CachedTokens > 0 {
		text += fmt.Sprintf(", %s of them cached", words.Number(int(s.Usage.CachedTokens)))
	}
	if s.FailedUSD > 0 {
		text += fmt.Sprintf("; of it %s for items that failed", words.Money(s.FailedUSD))
	}
	return text
}

// mostLaneRows bounds the rows of lanes, the dearest first.
const mostLaneRows = 10

// laneRows adds a row with the cost of each lane; none if only one was used.
func (s *Report) laneRows(row func(name string, value any, more ...string)) {
	var used []observe.Lane
	for _, l := range s.Lanes {
		if l.Spent.Priced+l.Spent.Unpriced > 0 {
			used = append(used, l)
		}
	}
	if len(used) < 2 || s.Spent.USD == nil {
		return
	}
	slices.SortStableFunc(used, func(a, b observe.Lane) int { return cmp.Compare(b.Spent.USD, a.Spent.USD) })
	for _, l := range used[:min(len(used), mostLaneRows)] {
		row("  "+printable.Line(l.Name), spentWords(l.Spent.USD, l.Spent.Priced > 0, l.Spent.Unpriced, l.Answered, l.Spent.InputTokens, l.Spent.OutputTokens))
	}
	if more := len(used) - mostLaneRows; more > 0 {
		row("  "+words.Count(more, "more lane"), "")
	}
	accountRows(used, row)
}

// accountRows adds a row with the cost of each account of several lanes.
func accountRows(used []observe.Lane, row func(name string, value any, more ...string)) {
	all := event.AccountsOf(used)
	for _, a := range all[:min(len(all), mostLaneRows)] {
		usd := 0.0
		if a.USD != nil {
			usd = *a.USD
		}
		row("  account "+printable.Line(a.Account), spentWords(usd, a.USD != nil, a.Unpriced, a.Answered, a.InputTokens, a.OutputTokens), fmt.Sprintf("(%d lanes)", a.Lanes))
	}
	if more := len(all) - mostLaneRows; more > 0 {
		row("  "+words.Count(more, "more account"), "")
	}
}

// spentWords says what items have cost, how many were answered, and their tokens.
func spentWords(usd float64, known bool, unpriced, answered int, in, out int64) string {
	number := words.Number
	return fmt.Sprintf("%s, %s %s, %s tokens in, %s out", words.Cost(usd, known, unpriced), number(answered), nounFor(uint64(answered), "answer"), number(int(in)), number(int(out)))
}

// markedWords counts the answers that were cut off or filtered, in brackets; nil if all are whole.
func (s *Report) markedWords() []string {
	cutOff, filtered := fmt.Sprintf("%d cut off at their max_tokens", s.Truncated), fmt.Sprintf("%d filtered", s.Filtered)
	switch {
	case s.Truncated > 0 && s.Filtered > 0:
		return []string{"(" + cutOff + ", " + filtered + ")"}
	case s.Truncated > 0:
		return []string{"(" + cutOff + ")"}
	case s.Filtered > 0:
		return []string{"(" + filtered + ")"}
	}
	return nil
}

// nounFor returns a noun in the form that follows a number.
func nounFor(n uint64, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// kindWords counts the failed items by kind, the most frequent first, and names their file; nil if nothing failed.
func (s *Report) kindWords() []string {
	if s.Failed == 0 {
		return nil
	}
	kinds := slices.SortedFunc(maps.Keys(s.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Kinds[b], s.Kinds[a]), cmp.Compare(a, b))
	})
	var words []string
	for _, k := range kinds {
		words = append(words, fmt.Sprintf("%d %s", s.Kinds[k], k))
	}
	return []string{"(" + strings.Join(words, ", ") + "; see " + s.ErrorsFile + ")"}
}

// Event returns the report for programs.
func (s *Report) Event() event.Summary {
	c, took := s.Counters, s.Ran // by its ledger, or by the clock if it has none
	if took <= 0 {
		took = s.Elapsed
	}
	e := event.Summary{
		Event: "summary", ElapsedS: event.Round(took.Seconds()), Items: s.Items(), Before: s.Before,
		Succeeded: s.Succeeded, Truncated: s.Truncated, Filtered: s.Filtered, Failed: s.Failed, FailedBy: s.Kinds, NotRun: s.NotRun, Left: s.Left, Unsaved: s.Unsaved, BadLines: s.Skipped, Untranslatable: s.Untranslatable, Renamed: s.Renamed,
		Offered: c.Offered, Settled: c.Settled, Released: c.Released, Calls: c.Calls, HandedOver: c.HandedOver,
		Throttled: c.Throttled, Cooldowns: c.Cooldowns, Participants: c.Participants, Probes: c.Probes,
		BreakerOpened: s.BreakerOpened, Broke: s.Broke, Stopped: s.Stopped,
		Redistributed: c.Redistributed, Parked: c.Parked, Delayed: c.Delayed, Stragglers: c.Stragglers, Proved: s.Proves(),
		InputTokens: s.Usage.InputTokens, OutputTokens: s.Usage.OutputTokens, CachedTokens: s.Usage.CachedTokens,
		Accounts: event.AccountsOf(s.Lanes), StoppedLanes: s.Stops[:min(len(s.Stops), event.MostStopped)],
		At: event.Stamp(s.At), BoundS: event.Seconds(s.Bounds), Spent: s.Spent, Efficiency: s.Efficiency, ExitCode: s.ExitCode,
	}
	if s.Resume != "" {
		e.Resume = &s.Resume
	}
	if s.Elapsed > 0 {
		e.PerSecond = event.Round(float64(s.Succeeded+s.Failed) / s.Elapsed.Seconds())
	}
	return e
}
