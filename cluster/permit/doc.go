// Package permit is what a worker and the keeper of a limit say to each other, and the law by
// which a worker's lane lives of it.
//
// It promises that a call leaves only with a permit that the keeper gave for a call of at
// least that cost, within [Life] of the ask that the permit answers, by the worker's own clock;
// that no permit is used twice; and that what became of each permit is said until it is known
// to have been heard.
//
//	worker ── Ask: what it would call next, what left, what ended ──▶ keeper
//	       ◀── Give: permits, and the ask that was heard last ──
//	       ◀── Cool: a wave, or the end; what was given before is void ──
//
// Messages may be lost, doubled and late: an Ask says all that is not known to have been heard,
// a Give is for one life of one worker, and numbers are never used twice within an epoch.
//
// A [Law] takes the place of a lane's own in the core's machine, which asks it as it asks any
// other. It believes nothing of the provider and decides nothing but this: is there a permit in
// hand for this call? Words reach it by Hear, and leave it by Say.
//
//	Wait ─0: a permit covers the call─▶ Sent takes it ─▶ … ─▶ Ended ─┐
//	Hear(Give) ─▶ in hand ─▶ too old, or of an older wave ─▶ unused ─┴─▶ reports ─▶ Say: Ask
//
// # How long a permit is good
//
// No two clocks are compared. A permit is good until [Life] after its worker sent the ask that
// it answers, by the worker's clock; that moment lies before the keeper granted it, whatever
// the ways were. So a worker that no word reaches stops within Life, and a keeper that heard
// nothing of a permit for [Forgotten] knows that no call will leave with it any more.
//
// A permit that an earlier keeper gave stays good until then. The keeper after it begins with
// nothing in hand, so that what the provider has covers what was given before, however much
// that is; and waiting for it to expire would only waste it. Words of an earlier keeper are
// not heard any more once a later one has spoken.
//
// Nothing here starts anything, waits, asks a clock or draws from chance.
package permit
