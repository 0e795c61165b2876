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
	snapshot *observe.Snapshot
	context  *Context
	lane     *observe.Lane // the subject; nil: none, or many
}

// A sentence says what holds back a run, or a lane. Of several texts the first that fits is used.
type sentence struct {
	text  []string // fits a row
	more  []string // further details: as many as fit, in their order
	short []string // fits shortCells
	lane  []string // fits laneCells
}

// laneOf returns the lane that holds the run back; nil if no lane does, or several do.
func laneOf(p *observe.Snapshot) *observe.Lane {
	for i := range p.Lanes {
		if l := &p.Lanes[i]; l.Name == p.Bottleneck.Lane && p.Bottleneck.Lane != "" || p.OfLanes == 1 {
			return l
		}
	}
	return nil
}

// describeBound fills in the fields about what holds the run back.
func (s *scene) describeBound(progress *Progress) {
	bottleneck := &s.snapshot.Bottleneck
	by := s.bound()
	sentence := s.sentenceOf(by)
	if s.snapshot.State == observe.Over {
		sentence = s.sentenceWhenOver()
	}
	second := ""
	if s.snapshot.State != observe.Over && bottleneck.Second != limiter.BoundNone && bottleneck.Second != by {
		second = fmt.Sprintf("%s of the time it is %s", share(bottleneck.SecondShare), s.boundNoun(bottleneck.Second))
		if bottleneck.SecondShare > bottleneck.Share {
			second = "recently it was " + s.boundNoun(bottleneck.Second) // the bound is named only after it has led for a while
		}
	}
	progress.Bound, progress.BoundShare = s.boundWord(by), Round(bottleneck.Share)
	progress.BoundText = fitting(rowCells, sentence.text...)
	progress.BoundMore = clauses(append([]string{second}, sentence.more...)...)
	progress.BoundShort = fitting(shortCells, append(sentence.short, progress.BoundText)...)
	progress.BoundWide = s.wideText(sentence)
	if bottleneck.Next != limiter.BoundNone && bottleneck.Factor > 0 && !math.IsInf(bottleneck.Factor, 0) {
		progress.Next = &Next{Bound: bottleneck.Next.String(), Factor: Round(bottleneck.Factor), Then: bottleneck.Then.String()}
	}
}

// sentenceWhenOver returns the sentence of a run that has ended. It names the bound that held the run back
// for longest.
func (s *scene) sentenceWhenOver() sentence {
	most, total := s.snapshot.Ledger.Longest(), s.snapshot.Ledger.Sum().Seconds()
	w := sentence{text: []string{"nothing now: it is over"}, short: []string{"nothing: it is over"}, lane: []string{"over"}}
	if most != limiter.BoundNone { // all is then over 0
		w.text = []string{"nothing now; for " + share(s.snapshot.Ledger[most].Seconds()/total) + " of the time it was " + s.boundNoun(most), w.text[0]}
	}
	return w
}

// bound returns what holds the run back now. The end of a run, or its pause, counts at once.
func (s *scene) bound() limiter.Bound {
	switch s.snapshot.State {
	case observe.Draining:
		return limiter.BoundDraining
	case observe.Stopped:
		return limiter.BoundStopped
	case observe.Paused:
		return limiter.BoundPaused
	}
	return s.snapshot.Bottleneck.By
}

// wideText returns the sentence and all its details in one line.
func (s *scene) wideText(w sentence) string {
	bottleneck, parts := &s.snapshot.Bottleneck, []string{}
	text := printableText(w.text[0])
	if bottleneck.Second != limiter.BoundNone && s.snapshot.State != observe.Over {
		text += fmt.Sprintf(", %s of the last %s", share(bottleneck.Share), roughDuration(observe.BottleneckSpan))
		secondText := share(bottleneck.SecondShare) + " of it " + s.boundNoun(bottleneck.Second)
		if bottleneck.Share+bottleneck.SecondShare >= 0.99 {
			secondText = s.boundNoun(bottleneck.Second) + " the other " + share(bottleneck.SecondShare)
		}
		parts = append(parts, secondText)
	}
	for _, more := range w.more {
		if more != "" && !strings.Contains(text, printableText(more)) {
			parts = append(parts, printableText(more))
		}
	}
	return strings.Join(append([]string{text}, parts...), "; ")
}

// fitting returns the first text that fits in n cells. If none does, it cuts off the last.
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
	one := &scene{snapshot: s.snapshot, context: s.context, lane: l}
	w := one.sentenceOf(s.laneBound(l))
	return fitting(laneCells, append(w.lane, "")...)
}

// laneBound returns what holds a lane back now. Whatever stops the run also stops the lane.
func (s *scene) laneBound(l *observe.Lane) limiter.Bound {
	if l.Phase == machine.Stopped {
		return limiter.BoundStopped
	}
	if by := s.bound(); s.snapshot.State != observe.Running && s.snapshot.State != observe.Stopped && by != s.snapshot.Bottleneck.By {
		return by
	}
	return l.NextBound
}

// A reason holds the words for a bound: in a row, where there are only 40 columns, and in a table
// of lanes. {of} stands for the model. Details are added to that, or take its place; nil: there
// are none.
type reason struct {
	text, short, lane string
	details           func(*scene, *sentence)
}

// reasons are the sentences of all bounds, and nouns names them in the sentence of another.
var reasons = map[limiter.Bound]reason{
	limiter.BoundRequests:     {"the provider's limit on requests{of}", "requests limit", "requests limit", func(s *scene, w *sentence) { s.describeLimit(w, 0, "requests") }},
	limiter.BoundTokens:       {"the provider's limit on tokens{of}", "tokens limit", "tokens limit", func(s *scene, w *sentence) { s.describeLimit(w, 1, "tokens") }},
	limiter.BoundInputTokens:  {"the provider's limit on input tokens{of}", "input tokens limit", "input tokens limit", func(s *scene, w *sentence) { s.describeLimit(w, 2, "input tokens") }},
	limiter.BoundOutputTokens: {"the provider's limit on output tokens{of}", "output tokens limit", "output tokens limit", func(s *scene, w *sentence) { s.describeLimit(w, 3, "output tokens") }},
	limiter.BoundSearch:       {"nothing known yet: the pace rises until it is refused", "finding the limit", "search", (*scene).describeSearch},
	limiter.BoundTrial: {"a trial{of}: slower for a while, to see whether refusals stop", "a trial: slower for a while", "trial", func(s *scene, w *sentence) {
		w.more = []string{s.beliefs("going slower"), s.nextBoundText()}
	}},
	limiter.BoundErrors:      {"calls break: slowed down", "calls break: slowed down", "calls break", (*scene).describeErrors},
	limiter.BoundWindow:      {"the server's own pace{of}", "the server's own pace", "server's pace", (*scene).describeWindow},
	limiter.BoundConcurrency: {"", "", "", (*scene).describeConcurrency},
	limiter.BoundOutput: {"", "the output", "output", func(s *scene, w *sentence) {
		who := s.readerNoun()
		w.text, w.short = []string{who + ": answers wait until they are written"}, []string{who, w.short[0]}
		w.more = []string{"more calls at once would not help", s.nextBoundText()}
	}},
	limiter.BoundCooldown:   {"a cooldown", "a cooldown", "cooldown", (*scene).describeCooldown},
	limiter.BoundOverload:   {"an overload", "an overload", "overload", (*scene).describeOverload},
	limiter.BoundBreaker:    {"an outage: calls break", "an outage", "outage", (*scene).describeOutage},
	limiter.BoundRecovery:   {"coming back{of}", "coming back", "coming back", (*scene).describeRecovery},
	limiter.BoundBackoff:    {"items that wait for their own retry", "items wait for their retry", "backoff", (*scene).describeBackoff},
	limiter.BoundInput:      {"", "your input", "your input", (*scene).describeInput},
	limiter.BoundPaused:     {"a pause: nothing is sent until it is resumed", "paused", "paused", nil},
	limiter.BoundDraining:   {"", "stopping", "stopping", (*scene).describeDraining},
	limiter.BoundStopped:    {"the provider serves nothing more", "the provider stopped it", "stopped", (*scene).describeStopped},
	limiter.BoundBudget:     {"your --max-cost: calls in flight may cost all that is left", "your --max-cost", "your --max-cost", nil},
	limiter.BoundTail:       {"the last calls: all have ended", "the last calls", "last calls", (*scene).describeTail},
	limiter.BoundUnanswered: {"calls that go unanswered", "calls go unanswered", "unanswered", (*scene).describeUnanswered},
	limiter.BoundSlept: {"this computer slept", "this computer slept", "slept", func(s *scene, w *sentence) { // or the process was stopped: the two look alike
		w.text = []string{"this computer slept, or this process was stopped: " + roughDuration(s.snapshot.Ledger[limiter.BoundSlept]) + " in all", w.text[0]}
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

// boundWord returns the word of what holds the run back.
func (s *scene) boundWord(by limiter.Bound) string {
	if by == limiter.BoundNone {
		return s.context.Bound
	}
	return by.String()
}

// sentenceOf returns the sentence for a bound. For a bound unknown to runs it shows the context's word.
func (s *scene) sentenceOf(by limiter.Bound) sentence {
	r, ok := reasons[by]
	if !ok {
		text := cmp.Or(s.context.Bound, "nothing: calls leave as they come")
		return sentence{text: []string{text}, short: []string{text, "nothing"}, lane: []string{""}}
	}
	w := sentence{text: []string{strings.Replace(r.text, "{of}", s.ofModel(), 1)}, short: []string{r.short}, lane: []string{r.lane}}
	if r.details != nil {
		r.details(s, &w)
	}
	return w
}

// BoundName returns a bound as a noun, from its word in bound_s. A word of a later version is returned as it
// is.
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

// boundNoun returns a bound as a noun, for the sentence of another bound.
func (s *scene) boundNoun(by limiter.Bound) string {
	switch by {
	case limiter.BoundConcurrency:
		return s.concurrencyNoun()
	case limiter.BoundOutput:
		return s.readerNoun()
	}
	return nouns[by]
}

// nextBoundText describes what would hold the run back without the present bound. It is "" if that is unknown
// or no faster.
func (s *scene) nextBoundText() string {
	bottleneck := &s.snapshot.Bottleneck
	if bottleneck.Next == limiter.BoundNone || !(bottleneck.Factor >= leastFactor) || bottleneck.Factor > mostFactor {
		return ""
	}
	text := fmt.Sprintf("next would be %s, at %.1f times this speed", s.nextName(bottleneck.Next), bottleneck.Factor)
	if bottleneck.Then != limiter.BoundNone && bottleneck.Then != bottleneck.Next {
		text += "; then " + s.nextName(bottleneck.Then)
	}
	return text
}

// The least and the greatest factor that a sentence mentions: from five per cent on, and up
// to what is believable.
const (
	leastFactor = 1.05
	mostFactor  = 10_000
)

// nextName returns a noun for a bound that would come next. A limit goes by its plain word, and a window by
// its cause.
func (s *scene) nextName(by limiter.Bound) string {
	switch by {
	case limiter.BoundConcurrency:
		if s.ofFile() {
			return fmt.Sprintf("%d calls in flight", s.snapshot.Concurrency)
		}
		return fmt.Sprintf("-c %d", s.snapshot.Concurrency)
	case limiter.BoundRequests, limiter.BoundTokens, limiter.BoundInputTokens, limiter.BoundOutputTokens:
		return plainWord(by.String())
	case limiter.BoundWindow:
		if s.guarded() {
			return "the guard on calls in flight"
		}
		return "the server's own pace"
	}
	return s.boundNoun(by)
}

// waitText returns the time until then; "" if there is no such moment, or it has passed.
func (s *scene) waitText(then time.Time) string {
	if d := then.Sub(s.snapshot.At); !then.IsZero() && d > 0 {
		return shortDuration(d)
	}
	return ""
}

// ofModel names the model or lane of the sentence, such as " of gpt-5"; "" if there is only one.
func (s *scene) ofModel() string {
	if s.snapshot.OfLanes <= 1 {
		return ""
	}
	if s.lane == nil {
		return fmt.Sprintf(", of %d %s", s.snapshot.OfLanes, s.lanesWord())
	}
	if s.lane.Account != "" { // several lanes of a file may have one model
		return " of " + clip(printable.Line(s.lane.Name), modelCells)
	}
	return " of " + clip(modelOf(s.lane.Name), modelCells)
}

// modelCells is the width of a model's name in a sentence.
const modelCells = 20
