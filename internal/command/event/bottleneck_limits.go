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

// limit says how much of a limit is drawn: 588 of 600 a minute.
func (s *scene) limit(w *sentence, k int, noun string) {
	w.lane = append(w.lane, strings.TrimSuffix(noun, " tokens")+" limit")
	if s.lane == nil {
		w.more = []string{s.next()}
		return
	}
	if v := &s.lane.View.Limits[k]; v.Known() && v.Refill > 0 {
		s.limitFigures(w, v, s.lane.Used[k], noun)
	}
	w.more = append(w.more, s.others(k, noun), s.draw(k), s.next())
}

// limitFigures adds the figures to the words.
func (s *scene) limitFigures(w *sentence, v *limiter.LimitView, used float64, noun string) {
	n, per := perTime(v.Refill)
	figure := amount(n)
	if used > 0 && used <= burstWorth {
		figure = amount(min(used, 1)*n) + " of " + figure
	}
	by, short, guess := w.by[0], noun+" limit: ", ""
	switch {
	case v.Source == limiter.Configured:
		by = "the limit on " + noun + s.ofModel() + " that you set"
	case v.Source == limiter.Learned:
		by, short, guess = "the limit on "+noun+s.ofModel()+", our guess so far", noun+": ", ", guess"
	}
	w.by = []string{by + ": " + figure + a[per] + source(v), by + ": " + figure + a[per], by}
	w.short = append([]string{short + figure + "/" + shortPer[per] + guess, short + amount(n) + "/" + shortPer[per] + guess}, w.short...)
	switch {
	case v.Level < 0:
		w.more = append(w.more, fmt.Sprintf("it is overdrawn by %s, which refill first", amount(-v.Level)))
	case used > burstWorth:
		w.more = append(w.more, "faster for now: what was saved up is spent first")
	}
}

// burstWorth is the share of a limit that must have been drawn to exceed it by more than
// noise and rounding. The excess was saved up while nobody called.
const burstWorth = 1.1

// source says where a limit is known from. Limits that the user set have other words.
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

// perTime returns a rate in the unit of time that gives it two digits.
func perTime(perSecond float64) (n float64, per string) {
	switch {
	case perSecond*60 >= 9.5:
		return perSecond * 60, "minute"
	case perSecond*3600 >= 9.5:
		return perSecond * 3600, "hour"
	}
	return perSecond * 86400, "day"
}

// a maps a unit of time to the words after a number.
var a = map[string]string{"minute": " a minute", "hour": " an hour", "day": " a day"}

var shortPer = map[string]string{"minute": "min", "hour": "h", "day": "d"}

// othersWorth is the least share of a limit, drawn beyond the run's own calls, that is
// reported. The rounded figures of the first few calls can look like a smaller share.
const othersWorth = 0.1

// others says how much of a limit is drawn beyond the run's own calls.
func (s *scene) others(k int, noun string) string {
	v := &s.lane.View.Limits[k]
	if !v.Known() || v.Others < othersWorth*v.Refill {
		return ""
	}
	n, per := perTime(v.Others)
	if k > 0 { // tokens are estimated, and the estimate may be wrong
		return fmt.Sprintf("%s %s%s more are drawn than estimated", amount(n), noun, a[per])
	}
	return fmt.Sprintf("other clients seem to use %s %s%s of it", amount(n), noun, a[per])
}

// drawWorth is the least ratio of an item's draw to its use that is reported.
const drawWorth = 1.25

// draw says how much an item draws of a limit on tokens, and how much of that it uses in the
// end. The use is known of the whole run only.
func (s *scene) draw(k int) string {
	d := s.lane.Draw
	drawn := []float64{0, d.Tokens(), d.Input, d.Output}[k]
	if drawn < 1 {
		return ""
	}
	text := "an item draws " + amount(drawn) + " tokens"
	used := s.used(k)
	if used <= 0 || drawn < drawWorth*used {
		return text
	}
	return text + " and uses " + amount(used) + ": try a smaller max_tokens"
}

// used returns the average number of tokens of an answered item; 0: that is not known.
func (s *scene) used(k int) float64 {
	u, n := s.p.Spent.Usage, float64(s.p.Answered)
	if s.p.OfLanes > 1 || n == 0 {
		return 0
	}
	return []float64{0, float64(u.InputTokens + u.OutputTokens), float64(u.InputTokens), float64(u.OutputTokens)}[k] / n
}

// calls shows a rate of calls.
func calls(perSecond float64) string {
	if perSecond < 9.95 {
		return fmt.Sprintf("%.1f calls/s", perSecond)
	}
	return amount(perSecond) + " calls/s"
}

// search says how fast the run searches for the limit.
func (s *scene) search(w *sentence) {
	if s.lane == nil {
		w.more = []string{"--rpm and --tpm would skip this search"}
		return
	}
	v := &s.lane.View
	if v.Search > 0 {
		pace := calls(v.Search)
		w.by = []string{"nothing known yet" + s.ofModel() + ": " + pace + ", doubled again and again until refused", "nothing known yet" + s.ofModel() + ": " + pace + ", doubled until refused"}
		if v.Over > 0 {
			w.by = []string{"the limit is not known yet: " + pace + " are tried, " + calls(v.Over) + " were refused", "the limit is not known yet: " + pace + " are tried"}
		}
		w.short = []string{"finding the limit: " + strings.Replace(pace, " calls", "", 1), w.short[0]}
		w.lane = []string{"search " + strings.Replace(pace, " calls", "", 1), "search"}
	}
	skip := "no header names a limit; --rpm and --tpm would skip this search"
	if v.Limits[1].Known() || v.Limits[2].Known() || v.Limits[3].Known() {
		skip = "no header names the limit on requests; --rpm would skip this search"
	}
	w.more = []string{skip, s.beliefs("its limit is not known yet")}
}

// believed returns the law's belief about a lane, with no more calls in flight than the run
// may have: the server may take more.
func (s *scene) believed(l *observe.Lane) limiter.View {
	v := l.View
	if n := s.p.Concurrency; n > 0 {
		v.Cap, v.Window = min(v.Cap, n), min(v.Window, n)
	}
	return v
}

// beliefs returns the law's belief in its own words. It leaves out those that begin so, and
// the headers that the law goes by: something else holds the run back.
func (s *scene) beliefs(but ...string) string {
	if s.lane == nil {
		return ""
	}
	but = append(but, "its headers say", "its refusals say")
	beliefs := slices.DeleteFunc(s.believed(s.lane).Words(), func(text string) bool {
		return !strings.HasSuffix(text, "wrong") && slices.ContainsFunc(but, func(b string) bool { return strings.HasPrefix(text, b) })
	})
	return row("; ", beliefs...)
}

func (s *scene) errors(w *sentence) {
	w.more = []string{"as fast as before once fewer break", s.next()}
	if l := s.lane; l != nil && l.Slowed > 0 {
		to := "to half"
		if l.Slowed != 0.5 {
			to = "to " + share(l.Slowed)
		}
		w.by = []string{fmt.Sprintf("calls%s break: slowed down %s, as %s of the latest did", s.ofModel(), to, share(l.Errors))}
		w.short = []string{share(l.Errors) + " of calls break: slowed", w.short[0]}
	}
}

// window names the source of the bound on calls in flight.
func (s *scene) window(w *sentence) {
	if s.lane == nil {
		w.more = []string{s.next()}
		return
	}
	v, n := &s.lane.View, s.lane.Window
	switch {
	case v.Binds.By == limiter.BoundLatency || v.Cap == 0 && v.Window > 0:
		n = v.Window
		w.by = []string{fmt.Sprintf("your --latency-target: %s in flight%s keep it", count(n, "call"), s.ofModel())}
		w.short, w.lane = []string{fmt.Sprintf("--latency-target: %d in flight", n)}, []string{"latency target"}
	case v.Cap > 0 && float64(s.lane.InFlight) < allFlying*float64(v.Cap):
		n = 0 // it was a bound, and has grown since
		w.by = []string{"the server's own pace" + s.ofModel() + ": finding how many calls it can take"}
		w.by = append(w.by, "the server's own pace"+s.ofModel()+" is being measured")
	case v.Cap > 0 && !s.lane.Local:
		n = v.Cap
		w.by = []string{fmt.Sprintf("the server's own pace%s: %s at once, our guess so far", s.ofModel(), count(n, "call"))}
		w.short = []string{fmt.Sprintf("its pace: %d at once, a guess", n)}
	case v.Cap > 0:
		n = v.Cap
		w.by = []string{fmt.Sprintf("the server's own pace%s: no more than %s at once", s.ofModel(), count(n, "call"))}
		w.short = []string{fmt.Sprintf("server's pace: %d in flight", n)}
	case n > 0:
		w.by = []string{fmt.Sprintf("the guard on calls in flight%s: no more than %s at once", s.ofModel(), count(n, "call"))}
		w.short, w.lane = []string{"guard: " + count(n, "call") + " in flight"}, []string{"guard"}
	}
	if n > 0 {
		w.lane = append([]string{w.lane[0] + " " + words.Number(n), fmt.Sprintf("window %d", n)}, w.lane...)
	}
	w.more = []string{s.taking(), s.next()}
}

// taking says how long a call takes.
func (s *scene) taking() string {
	if d := s.latency(); d > 0 {
		return "each takes " + lasting(d)
	}
	return ""
}

// concurrency says that the user's own bound on calls in flight holds the run back. It claims
// that all are in flight only if nearly all are at this moment.
func (s *scene) concurrency(w *sentence) {
	n := s.p.Concurrency
	if wait := s.c.InLine; wait > 0 && 2*wait >= s.latency() { // the places are full of calls that have not left
		w.by = []string{fmt.Sprintf("headrace serve: a call waits %s of %s in its line", lasting(wait), lasting(max(wait, s.latency())))}
		w.short, w.lane = []string{"the line of headrace serve"}, []string{"serve's line", "in line"}
		w.more = []string{"headrace ctl with its address says what for"}
		return
	}
	all := fmt.Sprintf("%s: all %s are in flight", s.places(), count(n, "call"))
	flying := float64(s.p.InFlight) >= allFlying*float64(n)
	switch {
	case !flying:
		all = fmt.Sprintf("%s: no more than %s at once", s.places(), count(n, "call"))
	case n == 1:
		all = "your -c 1: the one call is in flight"
	}
	w.by, w.short, w.lane = []string{all}, []string{fmt.Sprintf("your -c %d: all in flight", n)}, []string{fmt.Sprintf("-c %d", n)}
	if !flying {
		w.short = []string{s.places()}
	}
	if s.ofFile() {
		w.short, w.lane = []string{s.places()}, []string{fmt.Sprintf("%d in flight", n)}
	}
	if takes := s.taking(); takes != "" {
		w.by = []string{all + ", " + takes, all}
	}
	w.more = []string{s.larger()}
}

// places names the bound on all calls in flight. That of lanes of a file is the sum of theirs, unless -c is less.
func (s *scene) places() string {
	if s.ofFile() {
		return fmt.Sprintf("the %d places of all lanes", s.p.Concurrency)
	}
	return fmt.Sprintf("your -c %d", s.p.Concurrency)
}

// allFlying is the share of the concurrency from which on all of it counts as in flight: a
// snapshot may fall between the end of a call and the next.
const allFlying = 0.9

// queues reports whether the server is one's own, or all servers are. Such a server may work
// on what is in flight or let it wait, and nobody knows which.
func (s *scene) queues() bool {
	if s.lane != nil {
		return s.lane.Local
	}
	elsewhere := func(l observe.Lane) bool { return !l.Local }
	return len(s.p.Lanes) > 0 && !slices.ContainsFunc(s.p.Lanes, elsewhere)
}

// guarded reports whether only a guard bounds the lane's calls in flight. The guard grows
// with the answers.
func (s *scene) guarded() bool {
	return s.lane != nil && s.lane.View.Cap == 0 && s.lane.View.Window == 0
}

// larger says how many calls in flight the next bound would allow.
func (s *scene) larger() string {
	h := &s.p.Bottleneck
	if s.queues() {
		return "this server may queue: whether a larger -c would help is not known"
	}
	if h.Next == limiter.BoundNone || math.IsInf(h.Factor, 1) || h.Next == limiter.BoundWindow && s.guarded() {
		return "no limit has shown yet: a larger -c may go faster"
	}
	if !(h.Factor >= leastFactor) || h.Factor > mostFactor {
		return ""
	}
	who := s.name(h.Next) + " allows"
	switch h.Next {
	case limiter.BoundRequests, limiter.BoundTokens, limiter.BoundInputTokens, limiter.BoundOutputTokens:
		who = "the limit allows"
	case limiter.BoundWindow:
		who = "the server's own pace allows"
	}
	if s.ofFile() {
		return fmt.Sprintf("%s %.1f times as many: raise the lanes' concurrency", who, h.Factor)
	}
	enough := min(machine.MaxConcurrency, int(math.Ceil(h.Factor*float64(s.p.Concurrency))))
	return fmt.Sprintf("%s %.1f times as many: -c %d next time", who, h.Factor, enough)
}

// reader names the taker of the results.
func (s *scene) reader() string {
	if s.c.Stdout {
		return "the reader of the output"
	}
	return "your disk"
}
