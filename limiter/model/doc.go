// Package model has the law that decides by models of the provider's own limits.
//
//	headers, refusals, silence ─▶ gauges ─▶ rate = 0.98 · refill − others + (level − reserve) / 10 s
//	                                ▲
//	a refusal ─▶ who is to blame? ──┘─▶ the item waits, the lane holds, or a rate is learned
//
// Which file answers which question:
//
//	pacing.go     when may a call leave?                   asks; Sent charges a call
//	gauge.go      what is believed of one limit?           a value
//	              what is left of the user's limit?        a value, whatever is believed of the provider's
//	              how much flows in?                       a value: evidence by supposed depth
//	blame.go      who is to blame for a refusal?           the questions, in their order
//	              what follows from an alarm?              the rate is learned; the trial proves it or takes it back
//	cap.go        too many in flight?                      a value: two tables, and the cap
//	              how many at once, of a server of one's own?
//	estimate.go   how fast may it be asked?                search, and when evidence is enough
//	              may it be asked for more?                where time teaches
//	headers.go    what do headers tell?                    window or bucket, and per what time
//	fates.go      what became of which call, in order?     each lesson is taken once, and from here; tables
//	              was it nobody's fault?                   chance: a table, and two sums
//	sends.go      what left when, and was let in?          a value that forgets in bounds
//	ends.go       how do news come in?                     and when headers are wrong
//	phases.go     what does time teach?                    Tick; and the lane's phases
//	              is nothing let in, and why?              the drought: a value
//	memory.go     what is known after a restart?           Save and Restore
//	model.go      what is believed, and what binds?        View asks only
//
// Calls leave at the gauges' rate, unless a try, a fixed window or the end of a batch says
// otherwise (pacing.go).
//
// Each refusal goes through these questions, one after the other, and the first that fits
// decides. The law books the refusal with that explanation and with no other.
//
//	refusal ─▶ 1 probe, drought?  it was sent to find out, or nothing is let in → the lane cools on
//	          tokens?             it names a limit on them, told  → none are left; hold
//	        ─▶ 2 cap?             too many were in flight         → the item goes first, the lane flows
//	        ─▶ 3 headers?         they say there is no room       → hold; more reserve
//	        ─▶ 4 a cap at once?   a search's first refusal        → a cap is guessed
//	        ─▶ 5 asked for?       more was being tried            → the rate is learned; hold
//	        ─▶ 6 chance?          no thicker than it explains     → the item alone waits
//	        ─▶ 7 alarm            a search goes on from below; else the rate is learned, and the trial begins
//
// Every lesson is dated by when its call left, in seconds since the law began. The fate of a
// call is known when a later one was refused, or when the call is older than refusals take. The
// law takes fates in the order in which calls left, so that calls let in between two refusals
// are one run.
//
// # What the package promises
//
// It keeps the promises of package limiter. Every debt is bounded: by a minute of the limit, or
// by an hour of a configured one, or by two units or one call if that is more. The law keeps a bounded
// memory of its calls. A plain copy of a law may be asked, but must not be taught.
package model
