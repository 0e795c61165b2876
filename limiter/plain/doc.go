// Package plain has the law that needs no model: configured limits, a rate that rises and is cut, a
// cooldown after each wave of refusals, and a ramp after each cooldown.
//
//	cost ─▶ quota ─▶ ramp ─▶ pacer ─0─▶ the call leaves
//	          ▲        ▲       ▲
//	        told       │      rate ◀─ answered: it climbs; refused: it is cut
//	                   └─ cooldown ◀─ refused
//
// The parts know nothing of one another: quota of a bucket per dimension, pacer, rate, ramp and
// cooldown, and the window of errors that both laws have. [Law] puts them together.
//
// # What the package promises
//
// It keeps the promises of package limiter, and of its parts besides:
//
// Take of a part succeeds exactly when Wait is 0. If nothing was taken in between, Wait is 0 at
// the instant that it named. A wait cut short by measure.MaxWait is the exception: asking again
// then gives the rest.
//
// Every debt is bounded by a minute of the limit. No wait computed by a bucket, quota, pacer or
// ramp is longer than measure.MaxWait. A bucket that gains a unit a minute is full again within
// that time, whatever was drawn from it.
//
// No method of a part allocates. A method whose name is a question never writes.
package plain
