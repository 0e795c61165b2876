package observe

import (
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// Config says what a [Recorder] is to know of a run. The zero value is a recorder of a run
// of which nothing is known: no total, no prices.
//
// Price, Size, Describe, Code and Redact are called by many workers at once. Nothing that a
// function of a Config's does reaches the run: one that panics counts as if it had known
// nothing, and with the last event its panic is passed on, so that the run's error says
// [batch.ErrObserver].
type Config struct {
	Total  int    // items of the whole input, those of Before included; 0, and less: as [batch.WithTotal] says, or else UnknownTotal until the input has ended
	Before int    // of these, ended by earlier runs
	Work   []Work // what this run is to do; nil: that is not known

	// Price is what an item cost in USD, of all its calls; false, or not in
	// 0..provider.MostCost: it has no price. In is
	// that of [batch.End]. Nil: nothing has a price.
	Price func(in any, u provider.Usage) (usd float64, ok bool)
	// Size is how many bytes an item's request has, as in Work. Nil: that is not known, and
	// what is left is judged by items alone.
	Size func(in any) int64
	// Describe is an item's id, and its line in the input, for examples of failures. In is
	// not to be kept. Nil: it has no id, and its line is its place in the input.
	Describe func(in any) (id string, line int)
	// Code is how a failure is called. Nil: the word of its [provider.Kind] ("panic" for a
	// panic), and the HTTP status or else the provider's own code.
	Code func(err error) (kind, code string)
	// Redact takes secrets out of the messages of failures. Nil: they are as they are.
	Redact func(string) string

	Observer func(batch.Event) // is told what the run tells, after the recorder; nil: nobody is
	Every    time.Duration     // of pictures; 0, and less: DefaultEvery
	OnSample func(Sample)      // is told each sample, by the observer's goroutine, which it must not hold up; nil: nobody is
}

// Work is what a run is to do on one lane.
type Work struct {
	Lane  string // its name
	Items int
	Bytes int64 // of their requests; 0: not known
}

// DefaultEvery is the period of pictures: as often as a person can read one.
const DefaultEvery = 500 * time.Millisecond
