// Package executor runs the claims of one worker. It carries out the decisions of package claim's machine, and
// brings the items of all chunks at hand into the caller's one batch.Stream.
//
// A call leaves only when the machine lets it. A result is in its claim's journal before the machine hears that
// it is saved. Nothing waits without a bound, and everything that Run starts has ended when Run returns. One
// goroutine owns the machine and all knowledge of claims; it waits for nothing but news. Work that waits runs in
// other goroutines, which bring back a function for the owner to call.
//
//	Queue ─▶ ┌───────── owner ─────────┐ ─Items─▶ batch.Stream ─▶ Call ─ mayLeave ─▶ Job.Call
//	Peers ◀▶ │ claim.Machine           │ ◀──────────Took──────────────┘
//	words ─▶ │ the state of each claim │
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
