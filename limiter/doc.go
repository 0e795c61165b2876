// Package limiter is the arithmetic of admission: how long a call must wait,
// whether it may go, and what its end teaches.
//
//	cost ──▶ ┌────────┐ ──0──▶ the call leaves ──▶ its end, as News ──┐
//	         │  Law   │ ──wait, and for what                          │
//	time ──▶ └────────┘ ◀── answered, failed, refused, straggled ◀────┘
//	             ├── limiter/model: models of the provider's own limits, and of who is to blame for a refusal
//	             ├── limiter/plain: configured limits, a rate that rises and is cut, a cooldown, a ramp
//	             └── limiter/laws:  makes the one that is configured
//
// This package has the words of laws: their inputs ([Cost], [News], [Limits]), their answers
// ([Bound], [Refusal], [View]), the part that outlives them ([Memory]), and the settings of
// users. [Unlimited] is the least law. [Breaker], [Backoff] and [Latency] are for an owner of
// laws.
//
//	internal/measure ◀── limiter ◀── internal/window ◀── model, plain ◀── laws
//
// View and Words show the beliefs of a law to people; Save and Restore carry them over a
// restart. A law that follows another whose calls are still on their way begins with nothing in
// hand ([Memory.Empty]), and hears how they end ([News].Overheard).
//
// # Laws of other packages
//
// A [Maker] gives lanes a law of its own. The law may hear words from outside and say some:
// [Listener], [Speaker]. See law.go.
//
// # What the package promises
//
// Nothing here starts a goroutine, takes a lock, reads a clock or draws from an unseeded
// source: the caller passes the time. The same calls with the same times give the same answers.
// A value has one owner at a time. A plain copy of a part is independent of the original. A
// copy of a law may be asked, but must not be taught.
//
// Asking changes nothing. Time teaches in Tick alone, news in the methods that take [News], and
// a call that leaves in Sent. The other methods (Wait, Window, View, Save) leave every answer
// as it was, however often and with whatever times they are called. Some remember their latest
// answer, so as not to compute it twice. A method of a part whose name is a question never
// writes.
//
// A law's wait may be an estimate from below. Every debt is bounded.
//
// A clock that goes back neither refills nor drains: until it has caught up, the latest time
// seen is taken for the present. Times with Go's monotonic reading do not go back, so this is a
// guard and not a mode of operation.
//
// A law believes a restored memory only within bounds: it leaves out values that cannot be
// true, and the user's present limits win over it.
//
// # Units
//
// Limits are per minute, as providers publish them. Rates are per second. What a bucket holds
// are units: requests in one, tokens in another. +Inf is a rate without a limit.
//
// # Words
//
//	pace          at which calls leave, or may: calls per second
//	rate          what the server takes, as believed, learned or shown: units per second
//	share         of a whole, 0..1
//	window        calls in flight, at most; an error window is a span of time behind now
//	fixed window  a limit of a provider's that is whole again all at once
//	reserve       level of a limit that is kept back
//	told          said by the user; headers show, refusals say, calls teach; so is a word from outside
//	overheard     of a call that another law let go, of a machine before this one
//	probe         one call, to find out whether calls are let in again; a try asks for more
//	settle        an item's end, in the machine; of a quota: the real cost for the estimate
package limiter
