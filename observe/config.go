package observe

import (
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// Config tells a [Recorder] about a run. The zero value is for a run of which nothing is
// known: no total, no prices.
//
// Price, Size, Describe, Code and Redact are called by many workers at once. No function of a
// Config affects the run, except its error. One that panics counts as if it had known nothing.
// The first panic is passed on with the last event, so that the run's error includes
// [batch.ErrObserver].
type Config struct {
	Total  int    // items of the whole input, those of Before included; 0, and less: as [batch.WithTotal] says, or else UnknownTotal until the input has ended
	Before int    // of these, ended by earlier runs
	Work   []Work // of this run; nil: not known

	// Price returns what an item cost in USD, all its calls together. The item has no price if
	// Price returns false, or a cost outside 0..provider.MostCost. In is that of [batch.End].
	// Nil: nothing has a price.
	Price func(in any, u provider.Usage) (usd float64, ok bool)
	// Size returns the length of an item's request in bytes, as in Work. Nil: the lengths are not
	// known, and forecasts count items alone.
	Size func(in any) int64
	// Describe returns an item's id and its line in the input, for examples of failures. It must
	// not keep in. Nil: the item has no id, and its line is its place in the input.
	Describe func(in any) (id string, line int)
	// Code returns the name of a failure. Nil: kind is the word of its [provider.Kind] ("panic"
	// for a panic), and code the HTTP status or else the provider's own code.
	Code func(err error) (kind, code string)
	// Redact takes secrets out of the messages of failures. Nil: the messages stay as they are.
	Redact func(string) string

	Observer func(batch.Event) // receives each event of the run, after the recorder; may be nil
	Every    time.Duration     // between snapshots; 0 and less: DefaultEvery
	OnSample func(Sample)      // receives each sample, on the observer's goroutine, which it must not hold up; may be nil
}

// Work is the part of a run's work that is for one lane.
type Work struct {
	Lane  string // its name
	Items int
	Bytes int64 // of their requests; 0: not known
}

// DefaultEvery is the period of snapshots: as often as a person can read one.
const DefaultEvery = 500 * time.Millisecond
