package limiter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

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
	words := v.trouble()
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

// trouble returns the beliefs about refusals, in words.
func (v *View) trouble() (words []string) {
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
	case l.Source == Told:
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

// perTime returns a rate of units per second in words. It is by the minute if that makes about
// one or more, and by the hour if that makes ten or a whole number. Otherwise it is by the day.
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

// count formats a number with commas at the thousands, and with one decimal if it is a small
// one that is not whole.
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

// shareOf returns the refused share of calls, in the nearest words if these are as near as the
// share is known, or in numbers.
func shareOf(x, known float64) string {
	best, off := "", max(shareNear, known)
	for _, s := range shares {
		if d := math.Abs(x*s.of - 1); d <= off {
			best, off = s.word, d
		}
	}
	if best != "" {
		return "one call in " + best + " is"
	}
	of := 100.0
	if x < 0.02 {
		of = 1000
	}
	if n := math.Round(x * of); n != 1 {
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

// span formats a length of time, in the unit in which it is a small number.
func span(d time.Duration) string {
	switch {
	case d < 95*time.Second:
		return fmt.Sprintf("%.0f s", max(0, d.Seconds()))
	case d < 95*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}
