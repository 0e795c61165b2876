package event

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// describeLimit writes the sentence of a limit and how much of it is drawn, such as 588 of 600 a minute. k is
// the limit's index in a view.
func (s *scene) describeLimit(w *sentence, k int, noun string) {
	w.lane = append(w.lane, strings.TrimSuffix(noun, " tokens")+" limit")
	if s.lane == nil {
		w.more = []string{s.nextBoundText()}
		return
	}
	if v := &s.lane.View.Limits[k]; v.Known() && v.Refill > 0 {
		s.limitFigures(w, v, s.lane.Used[k], noun)
	}
	w.more = append(w.more, s.otherClientsText(k, noun), s.drawText(k), s.nextBoundText())
}

// limitFigures writes a limit's figures into the sentence: its size, its source, and the share in use.
func (s *scene) limitFigures(w *sentence, limit *limiter.LimitView, used float64, noun string) {
	rate, per := perTime(limit.Refill)
	figure := amount(rate)
	if used > 0 && used <= burstShare {
		figure = amount(min(used, 1)*rate) + " of " + figure
	}
	text, short, guess := w.text[0], noun+" limit: ", ""
	switch {
	case limit.Source == limiter.Configured:
		text = "the limit on " + noun + s.ofModel() + " that you set"
	case limit.Source == limiter.Learned:
		text, short, guess = "the limit on "+noun+s.ofModel()+", our guess so far", noun+": ", ", guess"
	}
	w.text = []string{text + ": " + figure + perUnit[per] + source(limit), text + ": " + figure + perUnit[per], text}
	w.short = append([]string{short + figure + "/" + shortUnit[per] + guess, short + amount(rate) + "/" + shortUnit[per] + guess}, w.short...)
	switch {
	case limit.Level < 0:
		w.more = append(w.more, fmt.Sprintf("it is overdrawn by %s, which refill first", amount(-limit.Level)))
	case used > burstShare:
		w.more = append(w.more, "faster for now: what was saved up is spent first")
	}
}

// burstShare is the share of a limit that must have been drawn to exceed it by more than
// noise and rounding. The excess was saved up while nobody called.
const burstShare = 1.1

// source describes where a limit is known from; "" for limits of the user, which have other words.
func source(v *limiter.LimitView) string {
	switch {
	case v.Source == limiter.Seen && v.Said:
		return " (its refusals)"
	case v.Source == limiter.Seen:
		return " (its headers)"
	case v.Source == limiter.Learned: // the law asks for more from time to time
		return ", rising"
	}
	return ""
}

// perTime converts a rate to the shortest unit of time in which it has at least two digits, but never beyond
// days.
func perTime(perSecond float64) (rate float64, unit string) {
	switch {
	case perSecond*60 >= 9.5:
		return perSecond * 60, "minute"
	case perSecond*3600 >= 9.5:
		return perSecond * 3600, "hour"
	}
	return perSecond * 86400, "day"
}

// perUnit maps a unit of time to the words after a number.
var perUnit = map[string]string{"minute": " a minute", "hour": " an hour", "day": " a day"}

var shortUnit = map[string]string{"minute": "min", "hour": "h", "day": "d"}

// othersShare is the least share of a limit, drawn beyond the run's own calls, that is
// reported. The rounded figures of the first few calls can look like a smaller share.
const othersShare = 0.1

// otherClientsText describes the part of a limit that is drawn beyond the run's own calls. k is the limit's
// index: 0 is that on requests, the others are on tokens.
func (s *scene) otherClientsText(k int, noun string) string {
	limit := &s.lane.View.Limits[k]
	if !limit.Known() || limit.Others < othersShare*limit.Refill {
		return ""
	}
	rate, per := perTime(limit.Others)
	if k > 0 { // tokens are estimated, and the estimate may be wrong
		return fmt.Sprintf("%s %s%s more are drawn than estimated", amount(rate), noun, perUnit[per])
	}
	return fmt.Sprintf("other clients seem to use %s %s%s of it", amount(rate), noun, perUnit[per])
}

// drawFactor is the least ratio of an item's draw to its use that is reported.
const drawFactor = 1.25

// drawText describes how much an item draws of a limit on tokens, and how much it uses in the end. The use is
// known only for the whole run.
func (s *scene) drawText(k int) string {
	draw := s.lane.Draw
	drawn := []float64{0, draw.Tokens(), draw.Input, draw.Output}[k]
	if drawn < 1 {
		return ""
	}
	text := "an item draws " + amount(drawn) + " tokens"
	used := s.tokensPerItem(k)
	if used <= 0 || drawn < drawFactor*used {
		return text
	}
	return text + " and uses " + amount(used) + ": try a smaller max_tokens"
}

// tokensPerItem returns the average number of tokens of an answered item; 0: that is not known.
func (s *scene) tokensPerItem(k int) float64 {
	u, n := s.snapshot.Spent.Usage, float64(s.snapshot.Answered)
	if s.snapshot.OfLanes > 1 || n == 0 {
		return 0
	}
	return []float64{0, float64(u.InputTokens + u.OutputTokens), float64(u.InputTokens), float64(u.OutputTokens)}[k] / n
}

// callRate shows a rate of calls.
func callRate(perSecond float64) string {
	if perSecond < 9.95 {
		return fmt.Sprintf("%.1f calls/s", perSecond)
	}
	return amount(perSecond) + " calls/s"
}

// describeSearch writes the sentence of a run that is still searching for the limit.
func (s *scene) describeSearch(w *sentence) {
	if s.lane == nil {
		w.more = []string{"--rpm and --tpm would skip this search"}
		return
	}
	view := &s.lane.View
	if view.Search > 0 {
		pace := callRate(view.Search)
		w.text = []string{"nothing known yet" + s.ofModel() + ": " + pace + ", doubled again and again until refused", "nothing known yet" + s.ofModel() + ": " + pace + ", doubled until refused"}
		if view.Over > 0 {
			w.text = []string{"the limit is not known yet: " + pace + " are tried, " + callRate(view.Over) + " were refused", "the limit is not known yet: " + pace + " are tried"}
		}
		w.short = []string{"finding the limit: " + strings.Replace(pace, " calls", "", 1), w.short[0]}
		w.lane = []string{"search " + strings.Replace(pace, " calls", "", 1), "search"}
	}
	skip := "no header names a limit; --rpm and --tpm would skip this search"
	if view.Limits[1].Known() || view.Limits[2].Known() || view.Limits[3].Known() {
		skip = "no header names the limit on requests; --rpm would skip this search"
	}
	w.more = []string{skip, s.beliefs("its limit is not known yet")}
}

// believed returns the law's belief about a lane, with no more calls in flight than the run
// may have: the server may take more.
func (s *scene) believed(l *observe.Lane) limiter.View {
	v := l.View
	if n := s.snapshot.Concurrency; n > 0 {
		v.Cap, v.Window = min(v.Cap, n), min(v.Window, n)
	}
	return v
}

// beliefs returns the law's beliefs about the lane, in its own words. It leaves out those with the given
// prefixes, and headers that the law follows.
func (s *scene) beliefs(prefixes ...string) string {
	if s.lane == nil {
		return ""
	}
	prefixes = append(prefixes, "its headers say", "its refusals say")
	beliefs := slices.DeleteFunc(s.believed(s.lane).Words(), func(text string) bool {
		return !strings.HasSuffix(text, "wrong") && slices.ContainsFunc(prefixes, func(b string) bool { return strings.HasPrefix(text, b) })
	})
	return row("; ", beliefs...)
}

// describeErrors writes the sentence of a lane that goes slower because its calls break.
func (s *scene) describeErrors(w *sentence) {
	w.more = []string{"as fast as before once fewer break", s.nextBoundText()}
	if l := s.lane; l != nil && l.Slowed > 0 {
		to := "to half"
		if l.Slowed != 0.5 {
			to = "to " + share(l.Slowed)
		}
		w.text = []string{fmt.Sprintf("calls%s break: slowed down %s, as %s of the latest did", s.ofModel(), to, share(l.Errors))}
		w.short = []string{share(l.Errors) + " of calls break: slowed", w.short[0]}
	}
}

// describeWindow writes the sentence of a lane held by its window. It names what bounds the calls in flight.
func (s *scene) describeWindow(w *sentence) {
	if s.lane == nil {
		w.more = []string{s.nextBoundText()}
		return
	}
	view, calls := &s.lane.View, s.lane.Window
	switch {
	case view.Binds.By == limiter.BoundLatency || view.Cap == 0 && view.Window > 0:
		calls = view.Window
		w.text = []string{fmt.Sprintf("your --latency-target: %s in flight%s keep it", count(calls, "call"), s.ofModel())}
		w.short, w.lane = []string{fmt.Sprintf("--latency-target: %d in flight", calls)}, []string{"latency target"}
	case view.Cap > 0 && float64(s.lane.InFlight) < allInFlightShare*float64(view.Cap):
		calls = 0 // it was a bound, and has grown since
		w.text = []string{"the server's own pace" + s.ofModel() + ": finding how many calls it can take"}
		w.text = append(w.text, "the server's own pace"+s.ofModel()+" is being measured")
	case view.Cap > 0 && !s.lane.Local:
		calls = view.Cap
		w.text = []string{fmt.Sprintf("the server's own pace%s: %s at once, our guess so far", s.ofModel(), count(calls, "call"))}
		w.short = []string{fmt.Sprintf("its pace: %d at once, a guess", calls)}
	case view.Cap > 0:
		calls = view.Cap
		w.text = []string{fmt.Sprintf("the server's own pace%s: no more than %s at once", s.ofModel(), count(calls, "call"))}
		w.short = []string{fmt.Sprintf("server's pace: %d in flight", calls)}
	case calls > 0:
		w.text = []string{fmt.Sprintf("the guard on calls in flight%s: no more than %s at once", s.ofModel(), count(calls, "call"))}
		w.short, w.lane = []string{"guard: " + count(calls, "call") + " in flight"}, []string{"guard"}
	}
	if calls > 0 {
		w.lane = append([]string{w.lane[0] + " " + words.Number(calls), fmt.Sprintf("window %d", calls)}, w.lane...)
	}
	w.more = []string{s.latencyText(), s.nextBoundText()}
}

// latencyText says how long a call takes.
func (s *scene) latencyText() string {
	if d := s.latency(); d > 0 {
		return "each takes " + shortDuration(d)
	}
	return ""
}

// describeConcurrency writes the sentence of the user's own bound on calls in flight. It claims that all are
// in flight only if nearly all are now.
func (s *scene) describeConcurrency(w *sentence) {
	calls := s.snapshot.Concurrency
	if wait := s.context.InLine; wait > 0 && 2*wait >= s.latency() { // the places are full of calls that have not left
		w.text = []string{fmt.Sprintf("headrace serve: a call waits %s of %s in its line", shortDuration(wait), shortDuration(max(wait, s.latency())))}
		w.short, w.lane = []string{"the line of headrace serve"}, []string{"serve's line", "in line"}
		w.more = []string{"headrace ctl with its address says what for"}
		return
	}
	text := fmt.Sprintf("%s: all %s are in flight", s.concurrencyNoun(), count(calls, "call"))
	allInFlight := float64(s.snapshot.InFlight) >= allInFlightShare*float64(calls)
	switch {
	case !allInFlight:
		text = fmt.Sprintf("%s: no more than %s at once", s.concurrencyNoun(), count(calls, "call"))
	case calls == 1:
		text = "your -c 1: the one call is in flight"
	}
	w.text, w.short, w.lane = []string{text}, []string{fmt.Sprintf("your -c %d: all in flight", calls)}, []string{fmt.Sprintf("-c %d", calls)}
	if !allInFlight {
		w.short = []string{s.concurrencyNoun()}
	}
	if s.ofFile() {
		w.short, w.lane = []string{s.concurrencyNoun()}, []string{fmt.Sprintf("%d in flight", calls)}
	}
	if takes := s.latencyText(); takes != "" {
		w.text = []string{text + ", " + takes, text}
	}
	w.more = []string{s.largerConcurrencyText()}
}

// concurrencyNoun names the bound on all calls in flight. That of lanes of a file is the sum of theirs, unless -c is less.
func (s *scene) concurrencyNoun() string {
	if s.ofFile() {
		return fmt.Sprintf("the %d places of all lanes", s.snapshot.Concurrency)
	}
	return fmt.Sprintf("your -c %d", s.snapshot.Concurrency)
}

// allInFlightShare is the share of the concurrency from which on all of it counts as in flight: a
// snapshot may fall between the end of a call and the next.
const allInFlightShare = 0.9

// mayQueue reports whether the server is one's own, or all servers are. Such a server may work
// on what is in flight or let it wait, and nobody knows which.
func (s *scene) mayQueue() bool {
	if s.lane != nil {
		return s.lane.Local
	}
	elsewhere := func(l observe.Lane) bool { return !l.Local }
	return len(s.snapshot.Lanes) > 0 && !slices.ContainsFunc(s.snapshot.Lanes, elsewhere)
}

// guarded reports whether only a guard bounds the lane's calls in flight. The guard grows
// with the answers.
func (s *scene) guarded() bool {
	return s.lane != nil && s.lane.View.Cap == 0 && s.lane.View.Window == 0
}

// largerConcurrencyText describes how many calls in flight the next bound would allow.
func (s *scene) largerConcurrencyText() string {
	bottleneck := &s.snapshot.Bottleneck
	if s.mayQueue() {
		return "this server may queue: whether a larger -c would help is not known"
	}
	if bottleneck.Next == limiter.BoundNone || math.IsInf(bottleneck.Factor, 1) || bottleneck.Next == limiter.BoundWindow && s.guarded() {
		return "no limit has shown yet: a larger -c may go faster"
	}
	if !(bottleneck.Factor >= leastFactor) || bottleneck.Factor > mostFactor {
		return ""
	}
	who := s.boundNoun(bottleneck.Next) + " allows"
	switch bottleneck.Next {
	case limiter.BoundRequests, limiter.BoundTokens, limiter.BoundInputTokens, limiter.BoundOutputTokens:
		who = "the limit allows"
	case limiter.BoundWindow:
		who = "the server's own pace allows"
	}
	if s.ofFile() {
		return fmt.Sprintf("%s %.1f times as many: raise the lanes' concurrency", who, bottleneck.Factor)
	}
	enough := min(machine.MaxConcurrency, int(math.Ceil(bottleneck.Factor*float64(s.snapshot.Concurrency))))
	return fmt.Sprintf("%s %.1f times as many: -c %d next time", who, bottleneck.Factor, enough)
}

// readerNoun names the taker of the results.
func (s *scene) readerNoun() string {
	if s.context.Stdout {
		return "the reader of the output"
	}
	return "your disk"
}
