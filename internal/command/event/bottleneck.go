package event

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// scene holds what a sentence is made of.
type scene struct {
	p    *observe.Snapshot
	c    *Context
	lane *observe.Lane // the subject; nil: none, or many
}

// A sentence says what holds back a run, or a lane. Of several texts the first that fits is used.
type sentence struct {
	by    []string // fits a row
	more  []string // further details: as many as fit, in their order
	short []string // fits shortCells
	lane  []string // fits laneCells
}

// laneOf returns the lane that holds the run back; nil if none does, or many do.
func laneOf(p *observe.Snapshot) *observe.Lane {
	for i := range p.Lanes {
		if l := &p.Lanes[i]; l.Name == p.Bottleneck.Lane && p.Bottleneck.Lane != "" || p.OfLanes == 1 {
			return l
		}
	}
	return nil
}

// describeBound fills in what holds the run back.
func (s *scene) describeBound(e *Progress) {
	h := &s.p.Bottleneck
	by := s.bound()
	w := s.words(by)
	if s.p.State == observe.Over {
		w = s.over()
	}
	second := ""
	if s.p.State != observe.Over && h.Second != limiter.BoundNone && h.Second != by {
		second = fmt.Sprintf("%s of the time it is %s", share(h.SecondShare), s.name(h.Second))
		if h.SecondShare > h.Share {
			second = "recently it was " + s.name(h.Second) // the bound is named only after it has led for a while
		}
	}
	e.Bound, e.BoundShare = s.word(by), Round(h.Share)
	e.BoundText = fitting(rowCells, w.by...)
	e.BoundMore = clauses(append([]string{second}, w.more...)...)
	e.BoundShort = fitting(shortCells, append(w.short, e.BoundText)...)
	e.BoundWide = s.wide(w)
	if h.Next != limiter.BoundNone && h.Factor > 0 && !math.IsInf(h.Factor, 0) {
		e.Next = &Next{Bound: h.Next.String(), Factor: Round(h.Factor), Then: h.Then.String()}
	}
}

// over returns the sentence of a run that has ended: what held it back for longest.
func (s *scene) over() sentence {
	most, all := s.p.Ledger.Longest(), s.p.Ledger.Sum().Seconds()
	w := sentence{by: []string{"nothing now: it is over"}, short: []string{"nothing: it is over"}, lane: []string{"over"}}
	if most != limiter.BoundNone { // all is then over 0
		w.by = []string{"nothing now; for " + share(s.p.Ledger[most].Seconds()/all) + " of the time it was " + s.name(most), w.by[0]}
	}
	return w
}

// bound returns what holds the run back now. A run that is ending, or that pauses, is held
// by that at once.
func (s *scene) bound() limiter.Bound {
	switch s.p.State {
	case observe.Draining:
		return limiter.BoundDraining
	case observe.Stopped:
		return limiter.BoundStopped
	case observe.Paused:
		return limiter.BoundPaused
	}
	return s.p.Bottleneck.By
}

// wide returns all details in one line.
func (s *scene) wide(w sentence) string {
	h, parts := &s.p.Bottleneck, []string{}
	text := harmless(w.by[0])
	if h.Second != limiter.BoundNone && s.p.State != observe.Over {
		text += fmt.Sprintf(", %s of the last %s", share(h.Share), span(observe.BottleneckSpan))
		of := share(h.SecondShare) + " of it " + s.name(h.Second)
		if h.Share+h.SecondShare >= 0.99 {
			of = s.name(h.Second) + " the other " + share(h.SecondShare)
		}
		parts = append(parts, of)
	}
	for _, more := range w.more {
		if more != "" && !strings.Contains(text, harmless(more)) {
			parts = append(parts, harmless(more))
		}
	}
	return strings.Join(append([]string{text}, parts...), "; ")
}

// fitting returns the first text that fits in n cells; if none does, as much of the last as fits.
func fitting(n int, texts ...string) string {
	for _, t := range texts {
		if cells(t) <= n {
			return clip(t, n)
		}
	}
	return clip(texts[len(texts)-1], n)
}

// laneBoundText says what holds one lane back, for a table.
func (s *scene) laneBoundText(l *observe.Lane) string {
	one := &scene{p: s.p, c: s.c, lane: l}
	w := one.words(s.laneBound(l))
	return fitting(laneCells, append(w.lane, "")...)
}

// laneBound returns what holds a lane back now: whatever stops the run stops the lane as
// well.
func (s *scene) laneBound(l *observe.Lane) limiter.Bound {
	if l.Phase == machine.Stopped {
		return limiter.BoundStopped
	}
	if by := s.bound(); s.p.State != observe.Running && s.p.State != observe.Stopped && by != s.p.Bottleneck.By {
		return by
	}
	return l.NextBound
}

// A reason holds the words for a bound: in a row, where there are only 40 columns, and in a table
// of lanes. {of} stands for the model. Details are added to that, or take its place; nil: there
// are none.
type reason struct {
	by, short, lane string
	details         func(*scene, *sentence)
}

// reasons are the sentences of all bounds, and nouns names them in the sentence of another.
var reasons = map[limiter.Bound]reason{
	limiter.BoundRequests:     {"the provider's limit on requests{of}", "requests limit", "requests limit", func(s *scene, w *sentence) { s.limit(w, 0, "requests") }},
	limiter.BoundTokens:       {"the provider's limit on tokens{of}", "tokens limit", "tokens limit", func(s *scene, w *sentence) { s.limit(w, 1, "tokens") }},
	limiter.BoundInputTokens:  {"the provider's limit on input tokens{of}", "input tokens limit", "input tokens limit", func(s *scene, w *sentence) { s.limit(w, 2, "input tokens") }},
	limiter.BoundOutputTokens: {"the provider's limit on output tokens{of}", "output tokens limit", "output tokens limit", func(s *scene, w *sentence) { s.limit(w, 3, "output tokens") }},
	limiter.BoundSearch:       {"nothing known yet: the pace rises until it is refused", "finding the limit", "search", (*scene).search},
	limiter.BoundTrial: {"a trial{of}: slower for a while, to see whether refusals stop", "a trial: slower for a while", "trial", func(s *scene, w *sentence) {
		w.more = []string{s.beliefs("going slower"), s.next()}
	}},
	limiter.BoundErrors:      {"calls break: slowed down", "calls break: slowed down", "calls break", (*scene).errors},
	limiter.BoundWindow:      {"the server's own pace{of}", "the server's own pace", "server's pace", (*scene).window},
	limiter.BoundConcurrency: {"", "", "", (*scene).concurrency},
	limiter.BoundOutput: {"", "the output", "output", func(s *scene, w *sentence) {
		who := s.reader()
		w.by, w.short = []string{who + ": answers wait until they are written"}, []string{who, w.short[0]}
		w.more = []string{"more calls at once would not help", s.next()}
	}},
	limiter.BoundCooldown:   {"a cooldown", "a cooldown", "cooldown", (*scene).cooldown},
	limiter.BoundOverload:   {"an overload", "an overload", "overload", (*scene).overload},
	limiter.BoundBreaker:    {"an outage: calls break", "an outage", "outage", (*scene).outage},
	limiter.BoundRecovery:   {"coming back{of}", "coming back", "coming back", (*scene).recovery},
	limiter.BoundBackoff:    {"items that wait for their own retry", "items wait for their retry", "backoff", (*scene).backoff},
	limiter.BoundInput:      {"", "your input", "your input", (*scene).input},
	limiter.BoundPaused:     {"a pause: nothing is sent until it is resumed", "paused", "paused", nil},
	limiter.BoundDraining:   {"", "stopping", "stopping", (*scene).draining},
	limiter.BoundStopped:    {"the provider serves nothing more", "the provider stopped it", "stopped", (*scene).stopped},
	limiter.BoundBudget:     {"your --max-cost: calls in flight may cost all that is left", "your --max-cost", "your --max-cost", nil},
	limiter.BoundTail:       {"the last calls: all have ended", "the last calls", "last calls", (*scene).tail},
	limiter.BoundUnanswered: {"calls that go unanswered", "calls go unanswered", "unanswered", (*scene).unanswered},
	limiter.BoundSlept: {"this computer slept", "this computer slept", "slept", func(s *scene, w *sentence) { // or the process was stopped: the two look alike
		w.by = []string{"this computer slept, or this process was stopped: " + span(s.p.Ledger[limiter.BoundSlept]) + " in all", w.by[0]}
	}},
}

var nouns = map[limiter.Bound]string{
	limiter.BoundRequests: "the limit on requests", limiter.BoundTokens: "the limit on tokens",
	limiter.BoundInputTokens: "the limit on input tokens", limiter.BoundOutputTokens: "the limit on output tokens",
	limiter.BoundSearch: "the search for the limit", limiter.BoundTrial: "a trial", limiter.BoundErrors: "calls that break",
	limiter.BoundWindow: "the calls that may be in flight", limiter.BoundCooldown: "a cooldown", limiter.BoundOverload: "an overload",
	limiter.BoundBreaker: "an outage", limiter.BoundRecovery: "coming back", limiter.BoundBackoff: "items that wait for their own retry",
	limiter.BoundInput: "your input", limiter.BoundPaused: "a pause", limiter.BoundDraining: "the end", limiter.BoundStopped: "the end",
	limiter.BoundTail: "the last calls", limiter.BoundUnanswered: "calls that go unanswered", limiter.BoundSlept: "this computer's sleep",
	limiter.BoundBudget: "your --max-cost",
}

// word returns the word of what holds the run back.
func (s *scene) word(by limiter.Bound) string {
	if by == limiter.BoundNone {
		return s.c.Bound
	}
	return by.String()
}

// words returns the sentence of a bound. A bound of no run's shows its word.
func (s *scene) words(by limiter.Bound) sentence {
	r, ok := reasons[by]
	if !ok {
		text := cmp.Or(s.c.Bound, "nothing: calls leave as they come")
		return sentence{by: []string{text}, short: []string{text, "nothing"}, lane: []string{""}}
	}
	w := sentence{by: []string{strings.Replace(r.by, "{of}", s.ofModel(), 1)}, short: []string{r.short}, lane: []string{r.lane}}
	if r.details != nil {
		r.details(s, &w)
	}
	return w
}

// BoundName returns what held a run back as a noun, by its word in bound_s. A word of a later version
// stands as it is.
func BoundName(word string, concurrency int) string {
	switch by := limiter.ParseBound(word); {
	case by == limiter.BoundConcurrency && concurrency > 0:
		return fmt.Sprintf("your -c %d", concurrency)
	case by == limiter.BoundConcurrency:
		return "calls in flight (-c)"
	case nouns[by] != "":
		return nouns[by]
	}
	return cmp.Or(plainWord(word), "nothing")
}

// name returns a bound as a noun, for the sentence of another.
func (s *scene) name(by limiter.Bound) string {
	switch by {
	case limiter.BoundConcurrency:
		return s.places()
	case limiter.BoundOutput:
		return s.reader()
	}
	return nouns[by]
}

// next says what would hold the run back if this did not; "" if that is not known, or no
// faster.
func (s *scene) next() string {
	h := &s.p.Bottleneck
	if h.Next == limiter.BoundNone || !(h.Factor >= leastFactor) || h.Factor > mostFactor {
		return ""
	}
	text := fmt.Sprintf("next would be %s, at %.1f times this speed", s.nextName(h.Next), h.Factor)
	if h.Then != limiter.BoundNone && h.Then != h.Next {
		text += "; then " + s.nextName(h.Then)
	}
	return text
}

// The least and the greatest factor that a sentence mentions: from five per cent on, and up
// to what is believable.
const (
	leastFactor = 1.05
	mostFactor  = 10_000
)

// nextName names a bound that would come next. A limit goes by its plain word, and a window by
// its cause. For other bounds it asks name.
func (s *scene) nextName(by limiter.Bound) string {
	switch by {
	case limiter.BoundConcurrency:
		if s.ofFile() {
			return fmt.Sprintf("%d calls in flight", s.p.Concurrency)
		}
		return fmt.Sprintf("-c %d", s.p.Concurrency)
	case limiter.BoundRequests, limiter.BoundTokens, limiter.BoundInputTokens, limiter.BoundOutputTokens:
		return plainWord(by.String())
	case limiter.BoundWindow:
		if s.guarded() {
			return "the guard on calls in flight"
		}
		return "the server's own pace"
	}
	return s.name(by)
}

// wait returns the time until then; "" if there is no such moment, or it has passed.
func (s *scene) wait(then time.Time) string {
	if d := then.Sub(s.p.At); !then.IsZero() && d > 0 {
		return lasting(d)
	}
	return ""
}

// ofModel names the lane's model, if there are others.
func (s *scene) ofModel() string {
	if s.p.OfLanes <= 1 {
		return ""
	}
	if s.lane == nil {
		return fmt.Sprintf(", of %d %s", s.p.OfLanes, s.lanesWord())
	}
	if s.lane.Account != "" { // several lanes of a file may have one model
		return " of " + clip(printable.Line(s.lane.Name), modelCells)
	}
	return " of " + clip(modelOf(s.lane.Name), modelCells)
}

// modelCells is the width of a model's name in a sentence.
const modelCells = 20
