// Package observe watches a run: what holds it back, how fast it goes, what fails, what it
// costs, and when it ends.
//
//	batch.WithCalls ────▶ eight shards, by worker: counts and latencies, by lane ──┐ emptied with
//	batch.WithEnds ─────▶ … and the ways in which items failed                     │ each snapshot
//	                                                                               ▼
//	batch.WithObserver ─▶ a status, twice a second ──────────────────────────▶ Recorder ──▶ Snapshot
//	                                                                               │
//	                            Config.OnSample ◀── a Sample a second ┘
//
// Use:
//
//	rec := observe.New(observe.Config{})
//	results, err := batch.Run(ctx, items, call, rec.Options()...)
//	// meanwhile, from any goroutine:
//	p := rec.Snapshot(time.Now())
//
// It promises that watching changes nothing: a run makes the same calls at the same moments
// with a Recorder or without one. A call costs it some hundred nanoseconds and no
// allocation, and it holds at most 2 MiB, however long the run and however many its lanes.
// It starts no goroutine: it computes every figure in the run's own callbacks. A snapshot has
// what was computed there, so no figure depends on how often one asks. It keeps the first
// MaxLanes lanes apart, and counts all others under OtherLanes.
//
// Unlike the packages that it watches, it has locks: one for each shard, one for failures,
// and one for everything that Snapshot reads. It holds no lock while a function of the caller's
// runs. The exception is Describe, which runs under a lock for the few failures that are kept.
package observe
