// Package executor lives the claims of one worker: it does what package claim's machine decides, and
// brings the items of all chunks at hand into the caller's one batch.Stream.
//
// It promises that a call leaves only when the machine lets it; that a result is in its claim's
// journal before the machine hears that it is saved; that nothing waits without a bound, and that
// whatever it starts has ended when Run returns. One goroutine owns the machine and everything
// that is known of claims; it never waits for anything but news. What waits runs beside it, and
// brings back a function that the owner calls.
//
//	Queue ─▶ ┌───────── owner ─────────┐ ─Items─▶ batch.Stream ─▶ Call ─ Begin ─▶ Job.Call
//	Peers ◀▶ │ claim.Machine           │ ◀──────────Took──────────────┘
//	words ─▶ │ desks: one for a claim  │
//	         └─┬───────────────────────┘
//	           ├─▶ look, list, join, clean   at the store
//	           ├─▶ a reader a claim          lines of the input, as they are wanted
//	           └─▶ a journal a claim         one thing at a time, in order
//
// A worker is:
//
//	x, err := executor.New(cfg)
//	go x.Run(ctx)
//	for res, err := range batch.Stream(ctx, x.Items(), x.Call, opts...) { x.Took(&res) }
package executor
