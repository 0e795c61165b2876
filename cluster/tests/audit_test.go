package tests

import (
	"fmt"
	"slices"
	"time"
)

// A blow is what was done to a process: from when, and until when it could not go on.
type blow struct {
	kind  string // kill, freeze, cut
	who   string
	at    time.Time
	until time.Time // of a kill: when it was struck; zero: it has not ended
	hands int       // its calls that the provider was working on
	may   int       // how many of its calls may be made again
	// saved are the questions whose answers were in the store when it was struck; nil: the time decides (unsaved).
	saved map[string]bool
}

// An absence is a time in which a worker could not reach the keeper.
type absence struct {
	who         string
	from, until time.Time
}

// An audit compares the judge's book with the blows and absences.
type audit struct {
	asked    map[string]int // how often each question stands in the input
	blows    []blow
	absences []absence
	// late is the most by which this machine was seen to be behind its clock. Instants that are
	// compared are read by two processes, and a machine that is busy reads them late.
	late time.Duration
}

const (
	// unsaved is the time before a blow in which an answer may not yet be in a journal. The journal is synced every 10
	// ms, and this leaves room for a slow disk.
	unsaved = time.Second
	// stops is within what a worker that lost the keeper makes no more calls.
	stops = 2 * time.Second
)

// A verdict is what an audit finds.
type verdict struct {
	calls, refused  int
	repeated        int      // calls that were bought beyond one for each item
	hands, may      int      // what was in flight at the blows; what may have been
	inexcusable     []string // repeats for which no blow is an excuse
	afterwards      []string // calls of workers that had lost the keeper for too long
	lastAfterCutOff time.Duration
	back            []time.Duration // how long after each absence the first call of anybody came
}

// judge reads the book.
func (a *audit) judge(book []call) (v verdict) {
	v.calls = len(book)
	byPrompt := map[string][]call{}
	for _, c := range book {
		if c.refused() {
			v.refused++
		}
		if c.bought() {
			byPrompt[c.prompt] = append(byPrompt[c.prompt], c)
		}
	}
	for prompt, calls := range byPrompt {
		v.repeated += max(0, len(calls)-a.asked[prompt])
		v.inexcusable = append(v.inexcusable, a.withoutExcuse(prompt, calls)...)
	}
	for _, b := range a.blows {
		v.hands += b.hands
		v.may += b.may
	}
	a.silence(book, &v)
	v.back = a.returns(book)
	slices.Sort(v.inexcusable)
	return v
}

// withoutExcuse are the calls for a question that need not have been made again: each but the
// last must have been lost with somebody who was struck. A question that several items ask
// is only counted.
func (a *audit) withoutExcuse(prompt string, calls []call) (told []string) {
	if a.asked[prompt] != 1 {
		return nil
	}
	for i, c := range calls[:len(calls)-1] {
		if !slices.ContainsFunc(a.blows, func(b blow) bool { return a.excuses(b, c) }) {
			told = append(told, fmt.Sprintf("%q: call %d of %d, of %s at %s, status %d, took %v", prompt, i+1, len(calls), c.who, c.at.Format(clockTime), c.status, c.ended.Sub(c.at)))
		}
	}
	return told
}

// excuses says that a call was in its caller's hands, or just out of them, when he was struck. What was said to one who
// was cut off may be lost: then he calls for as long as a permit lives before he looks, as in package claim's worlds.
func (a *audit) excuses(b blow, c call) bool {
	slack := a.late
	if b.kind == string(cutting) {
		slack += stops
	}
	began := b.until.IsZero() || c.at.Before(b.until.Add(slack))
	ended := !c.ended.IsZero() && c.ended.Before(b.at.Add(-unsaved-a.late))
	if b.saved != nil {
		ended = b.saved[c.prompt]
	}
	return b.who == c.who && began && !ended
}

// silence finds calls of those that had lost the keeper.
func (a *audit) silence(book []call, v *verdict) {
	for _, c := range book {
		for _, lost := range a.absences {
			if lost.who != c.who || c.at.Before(lost.from) || c.at.After(lost.until) {
				continue
			}
			since := c.at.Sub(lost.from)
			v.lastAfterCutOff = max(v.lastAfterCutOff, since)
			if since > stops+a.late {
				v.afterwards = append(v.afterwards, fmt.Sprintf("%s called %v after it had lost the keeper", c.who, since))
			}
		}
	}
}

// returns are how long it took after each end of an absence until somebody called; of those that
// ended together, once.
func (a *audit) returns(book []call) (all []time.Duration) {
	for i, lost := range a.absences {
		if i > 0 && lost.until.Sub(a.absences[i-1].until) < time.Millisecond {
			continue
		}
		next := slices.IndexFunc(book, func(c call) bool { return c.at.After(lost.until) })
		if next >= 0 {
			all = append(all, book[next].at.Sub(lost.until).Round(10*time.Millisecond))
		}
	}
	return all
}
