// Package observe watches a run: what holds it back, how fast it goes, what fails, what it
// costs, and when it ends.
//
//	batch.WithObserver ──┐
//	batch.WithCalls ─────┼─▶ Recorder ─┬─ Look ──▶ Picture   what a panel, a page, a line of JSON show: one truth
//	batch.WithEnds ──────┘             └─ Sample, one a second ─▶ Timeline, bounded
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
// allocation, and it holds a few MiB, however long the run. It starts no goroutine. Unlike
// the packages that it watches it has locks, one for each of a few workers, and one for all
// that is looked at.
package observe
