package limiter

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A View holds a law's beliefs at one moment, for people and programs to look at. Asking for it
// changes nothing. Rates are calls per second, except those of a [LimitView]; a zero moment is
// none.
type View struct {
	At     time.Time
	Limits [Dimensions]LimitView // of requests, tokens, input tokens and output tokens, in that order

	Pace  float64   // at which calls may leave; 0 while they may not, +Inf while nothing limits them
	Most  float64   // pace of a call that draws one request and nothing else, held or not; +Inf while nothing limits it
	Rate  float64   // that the server is believed to allow, that is searched at, or that a ramp leads to; +Inf while nothing is known
	Binds PaceBound // what gives the least rate
	Next  PaceBound // what would, if that were gone

	Weight     float64 // what input tokens are worth, of what was estimated; 1 where nothing corrects estimates
	Cap        int     // calls that are let in at once, at most; 0: none is believed
	Window     int     // calls in flight at which the mean latency stays at its target; 0: it has none
	Errors     float64 // share of calls that broke, 0..1, over the error window
	Chance     float64 // share of calls that is refused at whatever pace, 0..1, as far as slower ones have shown it
	ChanceSeen float64 // recent refusals that speak for it
	Search     float64 // the rate that is tried while none is believed; 0: there is no search
	Over       float64 // the rate at which a search was last refused; 0: it was not
	Lied       float64 // the rate that headers showed and that was found wrong; 0: they were not
	Tried      float64 // of Try

	Hold    time.Time // nothing leaves before
	Ramp    time.Time // until then the pace rises to what the limits allow
	Trial   time.Time // since when the lane goes slower, to see whether refusals cease
	Try     time.Time // since when a little more than the believed rate is tried
	Drought time.Time // since when nothing is let in
	Probed  int       // refusals in the drought
}

// A LimitView holds the beliefs about one limit. Rates are units per second. The zero value is
// a limit of which nothing is known.
type LimitView struct {
	Source   Source
	Refill   float64
	Capacity float64 // units that may be saved up; 0: not known
	Level    float64 // units that are left; negative is debt; see [View.Level]
	Others   float64 // rate that other clients draw, as far as it is more than noise
	Ceiling  float64 // the user's limit as a rate; 0: none
	Said     bool    // seen in the words of a refusal, and in no header

	Period time.Duration // of a window, which is whole again all at once; 0: it refills all the time
	Ends   time.Time     // of the window
}

// Level returns the units that a limit has left; negative is debt. It is +Inf if the limit is
// not known, or if only a learned rate of it is.
func (v *View) Level(d Dimension) float64 {
	k := int(d) - 1
	if k < 0 || k >= Dimensions || !v.Limits[k].Known() || v.Limits[k].Source == Learned && v.Limits[k].Capacity == 0 {
		return unlimited
	}
	return v.Limits[k].Level
}

// Known reports whether anything is known of the limit.
func (l *LimitView) Known() bool { return l.Source != Unknown }

// Dimensions is the number of limits in a [View].
const Dimensions = int(OutputTokens)

// A Source says how a limit is known. Each outranks those before it.
type Source uint8

// The sources.
const (
	Unknown    Source = iota
	Configured        // by the user
	Learned           // from the calls let in between two refusals
	Seen              // in the headers of an answer
)

var sourceWords = [...]string{"unknown", "told", "learned", "seen"}

func (s Source) String() string { return sourceWords[s] }

// A Bound names what holds a lane, or a run, back at one moment: it is why the next call does not
// leave then. A law names those of its lane, and the machine those of lanes and runs.
type Bound uint8

// The bounds. A run always has exactly one. BoundNone of a lane says that nothing of the lane's
// own holds it back. A limit's bound has the number of its [Dimension].
const (
	BoundNone         Bound = iota
	BoundRequests           // the limit on requests: its level, or the pace that it gives
	BoundTokens             // the limit on tokens
	BoundInputTokens        // the limit on input tokens
	BoundOutputTokens       // the limit on output tokens
	BoundSearch             // no limit is known yet: the pace rises until one shows
	BoundTrial              // going slower to see whether refusals cease
	BoundErrors             // calls break: slowed down
	BoundWindow             // calls in flight, as the lane or its law bounds them
	BoundConcurrency        // calls in flight, by the bound of the run, or of all runs together
	BoundCooldown           // the lane cools, refused; or its law lets nothing leave
	BoundOverload           // the lane cools, as its server says busy
	BoundBreaker            // the breaker is open
	BoundRecovery           // a probe is under way, or the lane climbs back
	BoundBackoff            // all waiting items wait for themselves
	BoundInput              // nothing waits, and the input has not ended
	BoundPaused             // the run is paused
	BoundDraining           // the run is to end: calls in flight finish
	BoundStopped            // no lane is left: calls in flight finish
	BoundTail               // nothing waits, and the input has ended: the last calls
	BoundUnanswered         // calls are overdue, and none has ended for as long
	BoundSlept              // the computer slept, or the process was stopped
	BoundBudget             // the run's money: the next call must wait for what is reserved for those in flight
	bounds
)

// Bounds is the number of bounds that a run is booked under, BoundNone included: they are
// 0..Bounds-1.
const Bounds = int(bounds)

// Finer bounds, which a [View], or an observer of a run, tells from those above. [Bound.Booked]
// says which of these they are.
const (
	BoundOutput  Bound = bounds + iota // calls in flight, as far as they wait until their results are written or read
	BoundOthers                        // a limit, as far as other clients draw on it
	BoundLatency                       // calls in flight at which the mean latency stays at its target; its pace is what that allows
	named
)

// BoundShort marks the bound of a call for which a limit has too little left. Without the mark
// the call waits for the pace that the limit gives.
const BoundShort Bound = 1 << 7

var boundWords = [named]string{
	"", "requests", "tokens", "input_tokens", "output_tokens", "search", "trial", "errors", "window",
	"concurrency", "cooldown", "overload", "breaker", "recovery", "backoff", "input", "paused", "draining", "stopped", "tail", "unanswered", "slept", "budget",
	"output", "others", "latency",
}

// Booked returns the bound under which a run's time is booked. A finer bound, or one that is
// marked, counts as the one of which it is a part.
func (b Bound) Booked() Bound {
	switch b &^= BoundShort; b {
	case BoundOutput:
		return BoundConcurrency
	case BoundOthers:
		return BoundRequests
	case BoundLatency:
		return BoundWindow
	}
	return b
}

// String returns the bound's word, in the letters that programs read; "" for BoundNone.
func (b Bound) String() string { return boundWords[b&^BoundShort] }

// ParseBound returns the bound that has the word; BoundNone if none has.
func ParseBound(word string) Bound { return Bound(max(0, slices.Index(boundWords[:], word))) }

// Why returns a word for people that says why a lane waits whose law names the bound. It is "rate"
// where a call waits only for a pace.
func (b Bound) Why() string {
	switch {
	case b == BoundNone:
		return ""
	case b == BoundCooldown:
		return "hold"
	case b == BoundRecovery:
		return "ramp"
	case b == BoundErrors, b&BoundShort != 0:
		return strings.ReplaceAll(b.String(), "_", " ")
	}
	return "rate"
}

// A PaceBound is one thing that bounds the pace, and the calls per second that it allows.
type PaceBound struct {
	By   Bound
	Pace float64
}

var unlimited = math.Inf(1)

// nothing bounds nothing.
var nothing = PaceBound{Pace: unlimited}

// Bind adds a bound on the pace, and keeps the two least. If two are equal, the earlier one stays.
func (v *View) Bind(by Bound, pace float64) {
	switch b := (PaceBound{By: by, Pace: pace}); {
	case math.IsNaN(pace) || math.IsInf(pace, 1):
	case pace < v.Binds.Pace:
		v.Binds, v.Next = b, v.Binds
	case pace < v.Next.Pace:
		v.Next = b
	}
}

// Thresholds for the words of a view.
const (
	wordyChance  = 0.005 // share that chance refuses: less bothers nobody
	wordyRefused = 3     // refusals that must speak for it
	wordyDrought = 2     // refusals in a row before nothing is let in
	wordySaved   = 2     // units that may be saved up: less is no burst
	wordyUnder   = 0.97  // of the user's limit, and less, is a lower one
	wordyOthers  = 0.1   // of a limit that other clients draw
)

// Words returns the law's beliefs in phrases for people, the most telling first: "no more than
// 8 in flight". There are none where nothing is believed.
func (v View) Words() []string {
	words := v.refusalWords()
	if v.Cap > 0 {
		words = append(words, "no more than "+count(float64(v.Cap))+" in flight")
	}
	if v.Binds.By == BoundLatency {
		words = append(words, "no more than "+count(float64(v.Window))+" in flight, or answers take longer than they may")
	}
	if v.Over > 0 && v.Cap == 0 {
		words = append(words, "its limit is not known yet"+v.searching())
	}
	for k := range v.Limits {
		if l := &v.Limits[k]; l.Known() {
			words = append(words, l.words(Dimension(k+1), v.At))
		}
	}
	for k := range v.Limits {
		if l := &v.Limits[k]; l.Others > wordyOthers*l.Refill {
			words = append(words, othersWords(Dimension(k+1), l.Others))
		}
	}
	if !v.Try.IsZero() && v.Binds.By == BoundRequests {
		words = append(words, perTime(v.Tried, "")+" is tried")
	}
	return words
}

// othersWords describes the draw on a limit beyond our own calls. Calls are counted, so others
// made the missing ones. Tokens are estimated: the estimate may be wrong.
func othersWords(d Dimension, rate float64) string {
	if d == Requests {
		return "other clients use " + perTime(rate, "")
	}
	return perTime(rate, unitOf(d)) + " more are drawn than estimated"
}

// refusalWords returns the beliefs about refusals, in words.
func (v *View) refusalWords() (words []string) {
	if v.Probed >= wordyDrought {
		words = append(words, "nothing is let in"+v.lasting())
	}
	if v.Lied > 0 {
		words = append(words, "its headers say "+perTime(v.Lied, "")+", and they are wrong")
	}
	switch {
	case v.Probed >= wordyDrought: // the law finds out nothing else now
	case !v.Trial.IsZero():
		words = append(words, "going slower to see whether refusals stop")
	case v.Over > 0 && v.Cap == 0: // the pace was blamed, and its share of the refusals is not known yet
	case v.Chance >= wordyChance && v.ChanceSeen >= wordyRefused:
		words = append(words, shareOf(v.Chance, shareError/math.Sqrt(v.ChanceSeen))+" refused, at any pace")
	}
	return words
}

// String returns the words in one line; "" where nothing is believed.
func (v View) String() string { return strings.Join(v.Words(), "; ") }

// searching returns the rate that is tried meanwhile, in words, if the search binds.
func (v *View) searching() string {
	if v.Binds.By != BoundSearch {
		return ""
	}
	return ": " + perTime(v.Search, "") + " is tried"
}

// lasting says for how long nothing has been let in, once that is worth a word.
func (v *View) lasting() string {
	age := v.At.Sub(v.Drought)
	if age < time.Second {
		return ""
	}
	return ", for " + span(age) + " now"
}

// words returns the beliefs about one limit, in words.
func (l *LimitView) words(d Dimension, at time.Time) string {
	rate := perTime(l.Refill, unitOf(d))
	switch {
	case l.Period > 0:
		return fmt.Sprintf("a window of %s%s by %s, %s left, %s to go",
			count(l.Capacity), unitOf(d), periodName(l.Period), count(math.Floor(max(0, l.Level))), span(l.Ends.Sub(at)))
	case l.Source == Seen:
		return fmt.Sprintf("its %s say %s, %s left", l.speaker(), rate, count(math.Floor(max(0, l.Level))))
	case l.Source == Configured:
		return rate + ", as told"
	case l.Ceiling > 0 && l.Refill < wordyUnder*l.Ceiling:
		return fmt.Sprintf("%s, not the %s that were set", rate, perTime(l.Ceiling, ""))
	case l.Capacity >= wordySaved:
		return fmt.Sprintf("%s, %s may be saved up", rate, count(math.Floor(l.Capacity)))
	}
	return rate
}

// speaker returns the part of the provider's answers that names a limit that was seen.
func (l *LimitView) speaker() string {
	if l.Said {
		return "refusals"
	}
	return "headers"
}

// unitOf returns the name of a dimension's unit, after a space; "" for calls, which go without
// saying.
func unitOf(d Dimension) string {
	if d == Requests || d == None {
		return ""
	}
	return " " + d.String()
}

// perTime returns a rate in words. It is by the minute if that makes about one or more, and by the
// hour if that makes ten or a whole number. Otherwise it is by the day.
func perTime(perSecond float64, unit string) string {
	for _, per := range []struct {
		seconds float64
		name    string
	}{{60, "a minute"}, {3600, "an hour"}} {
		if n := perSecond * per.seconds; n >= 10 || n >= 0.95 && (per.seconds == 60 || whole(n)) {
			return count(n) + unit + " " + per.name
		}
	}
	return count(perSecond*86400) + unit + " a day"
}

// count formats a number with commas at the thousands. A number under ten that is not whole has one
// decimal.
func count(n float64) string {
	if n < 10 && !whole(n) {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func whole(n float64) bool { return math.Abs(n-math.Round(n)) < 0.05 }

// shares are those that have a word of their own.
var shares = []struct {
	of   float64
	word string
}{
	{2, "two"},
	{3, "three"},
	{4, "four"},
	{5, "five"},
	{6, "six"},
	{7, "seven"},
	{8, "eight"},
	{9, "nine"},
	{10, "ten"},
	{20, "twenty"},
	{50, "fifty"},
	{100, "a hundred"},
}

const (
	shareNear  = 0.05 // how far a share may lie from one that has a word, as a part of it
	shareError = 0.5  // the same, times the usual error of a share of which one refusal is known
)

// shareOf returns the refused share of calls in words. precision is how well the share is known, as
// a part of it. If no words come that near, it returns numbers.
func shareOf(share, precision float64) string {
	best, nearest := "", max(shareNear, precision)
	for _, s := range shares {
		if d := math.Abs(share*s.of - 1); d <= nearest {
			best, nearest = s.word, d
		}
	}
	if best != "" {
		return "one call in " + best + " is"
	}
	of := 100.0
	if share < 0.02 {
		of = 1000
	}
	if n := math.Round(share * of); n != 1 {
		return fmt.Sprintf("%.0f calls in %s are", n, count(of))
	}
	return fmt.Sprintf("1 call in %s is", count(of))
}

// periodName names the period of a window.
func periodName(d time.Duration) string {
	switch d {
	case time.Second:
		return "the second"
	case time.Minute:
		return "the minute"
	case time.Hour:
		return "the hour"
	case 24 * time.Hour:
		return "the day"
	}
	return span(d)
}

// span formats a length of time in the unit that makes it a small number.
func span(d time.Duration) string {
	switch {
	case d < 95*time.Second:
		return fmt.Sprintf("%.0f s", max(0, d.Seconds()))
	case d < 95*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}
