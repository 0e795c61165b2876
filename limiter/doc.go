// Package limiter is the arithmetic of admission: how long a call must wait,
// whether it may go, and what its end teaches.
//
//	            may it go?                                  what did it teach?
//
//	cost ──▶ ┌─────────┐ bucket per dimension      usage ──▶ Quota.Settle, Refund
//	         │  Quota  │ requests, tokens,
//	         └────┬────┘ input, output
//	         ┌────▼────┐                         success ──▶ Rate.Success ◀── Latency
//	         │  Pacer  │ ◀── Rate (AIMD)         refusal ──▶ Rate.Refused, Cooldown.Start
//	         └────┬────┘ ◀── ErrorWindow.Factor  failure ──▶ ErrorWindow, Breaker, Backoff
//	         ┌────▼────┐                         any end ──▶ Meter
//	         │  Ramp   │ after a cooldown
//	         └────┬────┘
//	         ┌────▼────┐
//	         │ Breaker │ while the server is down
//	         └────┬────┘
//	              ▼ the call leaves
//
// The parts know nothing of one another. A [Law] puts them together: it says when
// the calls of one lane may leave, and learns from how they end.
//
//	Law ──┬── PlainLaw: Quota, Pacer, Rate, ErrorWindow, Ramp, Cooldown, as drawn
//	      └── ModelLaw: a model of each of the provider's own buckets, corrected by
//	          headers, refusals and silence; for local servers a LocalWindow
//
// # What the package promises
//
// Every type is a value that is told the time: nothing here starts a goroutine,
// takes a lock, reads a clock or draws from an unseeded source. The same calls
// with the same times give the same answers. A value has one owner at a time;
// a plain copy of it is independent of the original.
//
// A method named like a question (Wait, Level, Rate, State, Until) never writes,
// so looking never changes what happens. Take succeeds exactly when Wait is 0. If
// nothing was taken in between, it is 0 at the instant that Wait named; a wait cut
// short by [MaxWait] is the exception, and asking again then gives the rest.
//
// Every debt is bounded. No wait computed by a Bucket, Quota, Pacer or Ramp is
// longer than [MaxWait], and a bucket is full again within that time whatever was
// drawn from it.
//
// A clock that goes back neither refills nor drains: until it has caught up, the
// latest time seen is taken for the present. Times that carry Go's monotonic
// reading do not go back, so this is a guard and not a mode of operation.
//
// No method of a part allocates; a ModelLaw keeps a bounded memory of its calls.
//
// # Units
//
// Limits are per minute, as providers publish them. Rates (Pacer, Ramp, Rate,
// Meter) are per second. What a bucket holds are units: requests in one, tokens
// in another. +Inf is a rate without a limit.
package limiter
