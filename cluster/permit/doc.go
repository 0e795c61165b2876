// Package permit defines the messages between a worker and the keeper of a limit, and the law
// of a worker's lane that lives on permits.
//
// A call leaves only with a permit that the keeper gave for a call of at least that cost. It
// leaves within [Life] of the ask that the permit answers, by the worker's own clock. No permit
// is used twice. The worker reports the fate of each permit until it knows that the keeper has
// heard it.
//
//	worker ── Ask: what it would call next, what left, what ended ──▶ keeper
//	       ◀── Give: permits, and the ask that was heard last ──
//	       ◀── Cool: a wave, or a stop; permits given before are void ──
//
// Messages may be lost, doubled and late. An Ask repeats all that the keeper is not known to
// have heard. A Give is for one life of one worker, and numbers are never used twice within an
// epoch.
//
// A [Law] takes the place of a lane's own law in the core's machine, which asks it like any
// other. It believes nothing of the provider, and decides one thing: is there a permit in hand
// for this call? Messages reach it by Hear, and leave it by Say.
//
//	Wait ─0: a permit covers the call─▶ Sent takes it ─▶ … ─▶ Ended ─┐
//	Hear(Give) ─▶ in hand ─▶ too old, or of an older wave ─▶ unused ─┴─▶ reports ─▶ Say: Ask
//
// # How long a permit is good
//
// No two clocks are compared. A permit is good until [Life] after its worker sent the ask that
// it answers, by the worker's clock. The worker sent the ask before the keeper granted the
// permit, whatever the delays were. So a worker that no message reaches stops within Life. A
// keeper that has heard nothing of a permit for [Forgotten] knows that no call will leave with
// it any more.
//
// A permit that an earlier keeper gave stays good until then. The next keeper begins with an
// empty estimate, so the provider's bucket covers all that was given before. Waiting for those
// permits to expire would only waste them. A worker ignores an earlier keeper's messages once a
// later one has spoken.
//
// Nothing here starts anything, waits, reads a clock or draws from chance.
package permit
