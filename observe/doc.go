// Package observe watches a run: what holds it back, how fast it goes, what fails, what it
// costs, and when it ends.
//
//	batch.WithCalls ────▶ eight stripes by worker: counts and latencies, by lane ──┐ emptied with
//	batch.WithEnds ─────▶ … and the ways in which items failed                     │ each picture
//	                                                                               ▼
//	batch.WithObserver ─▶ a status, twice a second ──────────────────────────▶ Recorder ──▶ Look: a Picture
//	                                                                               │
//	                                       Timeline, bounded ◀── a Sample a second ┘
//
// Use:
//
//	rec := observe.New(observe.Config{})
//	results, err := batch.Run(ctx, items, call, rec.Options()...)
//	// meanwhile, from any goroutine:
//	p := rec.Look(time.Now())
//
// It promises that watching changes nothing: a run makes the same calls at the same moments
// with a Recorder or without one. A call costs it some hundred nanoseconds and no
// allocation, and it holds at most 4 MiB, however long the run and however many its lanes.
// It starts no goroutine: all is judged where the run tells of itself, and whoever looks is
// given what was judged, so that no figure hangs on how often one looks. Of lanes it tells
// MaxLanes apart, the first ones, and counts all others under OtherLanes.
//
// Unlike the packages that it watches it has locks: one for each stripe, one for failures,
// and one for all that is looked at. None is held while a function of the caller's runs, but
// for Describe, of the few failures that are kept.
package observe
