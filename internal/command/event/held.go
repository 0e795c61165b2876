package event

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/observe"
)

// scene holds what a sentence is made of.
type scene struct {
	p    *observe.Snapshot
	c    *Context
	lane *observe.Lane // the subject; nil: none, or many
}

// A sentence says what holds a run, or a lane, back. Of several texts the first that fits is
// used.
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

// held says what holds the run back.
func (s *scene) held(e *Progress) {
	h := &s.p.Bottleneck
	by := s.bound()
	w := s.words(by)
	if s.p.State == observe.Over {
		w = s.over()
	}
	second := ""
	if s.p.State != observe.Over && h.Second != observe.NoBound && h.Second != by {
		if second = fmt.Sprintf("%s of the time it is %s", share(h.SecondShare), s.name(h.Second)); h.SecondShare > h.Share {
			second = "recently it was " + s.name(h.Second) // the bound is named only after it has led for a while
		}
	}
	e.Bound, e.BoundShare = string(by), Round(h.Share)
	e.HeldBy = fitting(rowCells, w.by...)
	e.HeldMore = clauses(append([]string{second}, w.more...)...)
	e.HeldShort = fitting(shortCells, append(w.short, e.HeldBy)...)
	e.HeldWide = s.wide(w)
	if h.Next != observe.NoBound && h.Factor > 0 && !math.IsInf(h.Factor, 0) {
		e.Next = &Next{Bound: string(h.Next), Factor: Round(h.Factor), Then: string(h.Then)}
	}
}

// over says what held an ended run back for longest.
func (s *scene) over() sentence {
	most, all := observe.NoBound, time.Duration(0)
	for by, d := range s.p.Ledger {
		if all += d; d > s.p.Ledger[most] || d == s.p.Ledger[most] && by < most {
			most = by
		}
	}
	w := sentence{by: []string{"nothing now: it is over"}, short: []string{"nothing: it is over"}, lane: []string{"over"}}
	if most != observe.NoBound && all > 0 {
		w.by = []string{"nothing now; " + share(s.p.Ledger[most].Seconds()/all.Seconds()) + " of its time it was " + s.name(most), w.by[0]}
	}
	return w
}

// bound returns what holds the run back now. A run that is ending, or that pauses, is held
// by that at once.
func (s *scene) bound() observe.Bound {
	switch s.p.State {
	case observe.Draining:
		return byDraining
	case observe.Stopped:
		return byStopped
	case observe.Paused:
		return byPaused
	}
	return s.p.Bottleneck.By
}

// wide returns all details in one line.
func (s *scene) wide(w sentence) string {
	h, parts := &s.p.Bottleneck, []string{}
	text := harmless(w.by[0])
	if h.Second != observe.NoBound && s.p.State != observe.Over {
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

// fitting returns the first text that fits in n cells, or as much as fits of the last.
func fitting(n int, texts ...string) string {
	for _, t := range texts {
		if cells(t) <= n {
			return clip(t, n)
		}
	}
	return clip(texts[len(texts)-1], n)
}

// laneHeld says what holds one lane back, for a table.
func (s *scene) laneHeld(l *observe.Lane) string {
	one := &scene{p: s.p, c: s.c, lane: l}
	w := one.words(s.laneBound(l))
	return fitting(laneCells, append(w.lane, "")...)
}

// laneBound returns what holds a lane back now: whatever stops the run stops the lane as
// well.
func (s *scene) laneBound(l *observe.Lane) observe.Bound {
	if l.Phase == machine.Stopped {
		return byStopped
	}
	if by := s.bound(); s.p.State != observe.Running && s.p.State != observe.Stopped && by != s.p.Bottleneck.By {
		return by
	}
	return l.HeldBy
}

// The words for what holds a run back, as programs read them.
const (
	byRequests     observe.Bound = "requests"
	byTokens       observe.Bound = "tokens"
	byInputTokens  observe.Bound = "input_tokens"
	byOutputTokens observe.Bound = "output_tokens"
	bySearch       observe.Bound = "search"
	byTrial        observe.Bound = "trial"
	byErrors       observe.Bound = "errors"
	byWindow       observe.Bound = "window"
	byConcurrency  observe.Bound = "concurrency"
	byCooldown     observe.Bound = "cooldown"
	byOverload     observe.Bound = "overload"
	byBreaker      observe.Bound = "breaker"
	byRecovery     observe.Bound = "recovery"
	byBackoff      observe.Bound = "backoff"
	byInput        observe.Bound = "input"
	byPaused       observe.Bound = "paused"
	byDraining     observe.Bound = "draining"
	byStopped      observe.Bound = "stopped"
	byTail         observe.Bound = "tail"
	byUnanswered   observe.Bound = "unanswered"
	bySlept        observe.Bound = "slept"
)

// tellers explain each of them.
var tellers = map[observe.Bound]func(*scene) sentence{
	byRequests:     func(s *scene) sentence { return s.limit(0, "requests") },
	byTokens:       func(s *scene) sentence { return s.limit(1, "tokens") },
	byInputTokens:  func(s *scene) sentence { return s.limit(2, "input tokens") },
	byOutputTokens: func(s *scene) sentence { return s.limit(3, "output tokens") },
	bySearch:       (*scene).search,
	byTrial:        (*scene).trial,
	byErrors:       (*scene).errors,
	byWindow:       (*scene).window,
	byConcurrency:  (*scene).concurrency,
	observe.Output: (*scene).output,
	byCooldown:     (*scene).cooldown,
	byOverload:     (*scene).overload,
	byBreaker:      (*scene).outage,
	byRecovery:     (*scene).recovery,
	byBackoff:      (*scene).backoff,
	byInput:        (*scene).input,
	byPaused:       (*scene).paused,
	byDraining:     (*scene).draining,
	byStopped:      (*scene).stopped,
	byTail:         (*scene).tail,
	byUnanswered:   (*scene).unanswered,
	bySlept:        (*scene).slept,
}

// words returns the sentence of a bound. An unknown bound shows its word.
func (s *scene) words(by observe.Bound) sentence {
	if tell := tellers[by]; tell != nil {
		return tell(s)
	}
	text := string(by)
	if by == observe.NoBound {
		text = "nothing: calls leave as they come"
	}
	return sentence{by: []string{text}, short: []string{text, "nothing"}, lane: []string{string(by)}}
}

// name returns a bound as a noun, for the sentence of another.
func (s *scene) name(by observe.Bound) string {
	switch by {
	case byConcurrency:
		return fmt.Sprintf("your -c %d", s.p.Concurrency)
	case byRequests, byTokens, byInputTokens, byOutputTokens:
		return "the limit on " + plainWord(string(by))
	case byInput:
		return "your input"
	case observe.Output:
		return s.reader()
	}
	if n, ok := nouns[by]; ok {
		return n
	}
	return plainWord(string(by))
}

var nouns = map[observe.Bound]string{
	bySearch: "the search for the limit", byTrial: "a trial",
	byErrors: "calls that break", byWindow: "the calls that may be in flight", byCooldown: "a cooldown", byOverload: "an overload", byBreaker: "an outage",
	byRecovery: "coming back", byBackoff: "items that wait for their own retry", byPaused: "a pause", byDraining: "the end", byStopped: "the end", byTail: "the last calls", byUnanswered: "calls that go unanswered",
	bySlept: "this computer's sleep",
}

// next says what would hold the run back if this did not; "" if that is not known, or no
// faster.
func (s *scene) next() string {
	h := &s.p.Bottleneck
	if h.Next == observe.NoBound || !(h.Factor >= leastFactor) || h.Factor > mostFactor {
		return ""
	}
	text := fmt.Sprintf("next would be %s, at %.1f times this speed", s.nextName(h.Next), h.Factor)
	if h.Then != observe.NoBound && h.Then != h.Next {
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

func (s *scene) nextName(by observe.Bound) string {
	switch by {
	case byConcurrency:
		return fmt.Sprintf("-c %d", s.p.Concurrency)
	case byRequests, byTokens, byInputTokens, byOutputTokens:
		return plainWord(string(by))
	case byWindow:
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
		return fmt.Sprintf(", of %d models", s.p.OfLanes)
	}
	return " of " + clip(modelOf(s.lane.Name), modelCells)
}

// modelCells is the width of a model's name in a sentence.
const modelCells = 20
