// Package measure has numbers, spans of time and counts over time that limiter and its laws
// share.
//
//	told by a user     ─Positive, OrElse, Bounded, …─▶ what can be meant
//	seconds of refill  ─Wait, Span─▶ a wait
//	events             ─Meter─▶ how many per second
//	good and bad ones  ─Tallies─▶ how many in the latest span of time
//
// It keeps the promises of package limiter: nothing here reads a clock, and a plain copy is
// independent of the original. No method allocates, except for Tallies of more than twelve
// slots, once in each.
package measure
