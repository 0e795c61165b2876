// Package limiter is the arithmetic of admission: how long a call must wait,
// whether it may go, and what its end teaches.
//
//	cost ──▶ ┌────────┐ ──0──▶ the call leaves ──▶ its end, as News ──┐
//	         │  Law   │ ──wait, and for what                          │
//	time ──▶ └────────┘ ◀── answered, failed, refused, straggled ◀────┘
//	             ├── ModelLaw: models of the provider's own limits, and of who is to blame for a refusal
//	             └── PlainLaw: told limits, a rate that rises and is cut, a cooldown, a ramp
//
// The plain law is put together from parts that know nothing of one another: [Quota] of
// a [Bucket] a dimension, [Pacer], [Rate], [ErrorWindow], [Ramp], [Cooldown]. [Breaker],
// [Backoff], [Latency] and [Meter] are for whoever owns a law.
//
// # The model law
//
// Which file answers which question:
//
//	pacing.go     when may a call leave?                   asks only; Sent alone writes
//	gauge.go      what is believed of one limit?           a value
//	blame.go      who is to blame for a refusal?           the questions, in their order
//	cap.go        too many in flight?                      a value: two tables, and the cap
//	chance.go     nobody?                                  a value: a table, and two sums
//	trial.go      chance or the pace?                      a value: go slower, and see
//	alarm.go      what follows from an alarm?              the rate is learned, proved or taken back
//	order.go      what became of calls, in their order?    each lesson is taken once, and from here
//	drought.go    is nothing let in, and why?              a value
//	estimate.go   how fast may it be asked?                search, and when evidence is enough
//	try.go        may it be asked for more?                where time teaches
//	inflow.go     how much flows in?                       a value: evidence by supposed depth
//	headers.go    what do headers tell, window or bucket?  period.go: per what time?
//	fates.go      what became of which call, in order?     tables of calls and refusals, too
//	sends.go      what left when, and was let in?          a value that forgets in bounds
//	ends.go       how do news come in?                     and when headers are wrong
//	phases.go     what does time teach?                    Tick; and the lane's phases
//	local.go      how many at once, of a server of one's own?
//	meanwindow.go how many at once, for a latency to be kept? of the plain law, too
//
// A refusal is put to these questions, one after the other, and the first that fits
// decides. What fits is booked with that explanation and with no other.
//
//	refusal ─▶ 1 probe, drought?  it was sent to find out, or nothing is let in → the lane cools on
//	          tokens?             it names a limit on them, told  → none are left; hold
//	        ─▶ 2 cap?             too many were in flight         → the item goes first, the lane flows
//	        ─▶ 3 headers?         they say there is no room       → hold; more reserve
//	        ─▶ 4 asked for?       more was being tried            → the rate is learned; hold
//	        ─▶ 5 chance?          no thicker than it explains     → the item alone waits
//	        ─▶ 6 alarm            the rate is learned, and the trial begins
//
// All is dated by when a call left, in seconds since the law began. What is to become of
// a call is known when a later one was refused, or when it is older than refusals take;
// fates are taken in the order in which calls left, so that a run of calls let in is one.
//
// View and Words say what is believed, for people; Save and Restore carry it over a
// restart. See view.go and memory.go. A law that follows another whose calls are still on
// their way begins with nothing in hand ([Memory.Empty]), and hears how they end
// ([News].Overheard).
//
// # Laws of other packages
//
// A [Maker] gives lanes a law of its own, which embeds one of this package. It may be told
// words from outside and say some: [Listener], [Speaker]. See foreign.go.
//
// # What the package promises
//
// Nothing here starts a goroutine, takes a lock, reads a clock or draws from an
// unseeded source: every type is told the time. The same calls with the same times give
// the same answers. A value has one owner at a time. A plain copy of a part is
// independent of the original; one of a law may be asked, and not taught.
//
// Asking changes nothing. Time teaches in Tick alone, news in the methods that take
// [News], and a call that leaves in Sent; whatever is asked besides (Wait, Window, View,
// Save) leaves the law as it was, however often and with whatever times it is asked. Of
// the parts likewise: a method named like a question never writes.
//
// Take of a part succeeds exactly when Wait is 0. If nothing was taken in between, it is
// 0 at the instant that Wait named; a wait cut short by [MaxWait] is the exception, and
// asking again then gives the rest. A law's wait may be an estimate from below.
//
// Every debt is bounded: by a minute of the limit, or under a ModelLaw by an hour of one that
// was told. No wait computed by a Bucket, Quota, Pacer or Ramp is longer than [MaxWait], and a
// bucket that gains a unit a minute is full again within that time whatever was drawn from it.
//
// A clock that goes back neither refills nor drains: until it has caught up, the
// latest time seen is taken for the present. Times that carry Go's monotonic
// reading do not go back, so this is a guard and not a mode of operation.
//
// No method of a part allocates, but for an ErrorWindow of more than twelve buckets, once
// in each; a ModelLaw keeps a bounded memory of its calls. What is
// restored is believed only within bounds: a memory that says what cannot be true is
// left out, and what a user tells now wins over it.
//
// # Units
//
// Limits are per minute, as providers publish them. Rates (Pacer, Ramp, Rate,
// Meter, and all of a law) are per second. What a bucket holds are units: requests in
// one, tokens in another. +Inf is a rate without a limit.
//
// # Words
//
//	pace          at which calls leave, or may: calls per second
//	rate          what the server takes, as believed, learned or shown: units per second
//	share         of a whole, 0..1
//	window        calls in flight, at most; an error window is a span of time behind now
//	fixed window  a limit of a provider's that is whole again all at once
//	reserve       level of a limit that is kept back
//	told          said by the user; headers show, refusals say, calls teach; a word from outside is told, too
//	overheard     of a call that another law let go, of a machine before this one
//	probe         one call, to find out whether calls are let in again; a try asks for more
//	settle        an item's end, in the machine; of a Quota: the real cost for the estimate
package limiter
