// Package permit is what a worker and the keeper of a limit say to each other, and the law by
// which a worker's lane lives of it.
//
// It promises that a call leaves only with a permit that the keeper gave for a call of at
// least that cost, within [Life] of the ask that the permit answers, by the worker's own clock;
// and that what became of each permit is said until it is known to have been heard.
//
//	worker ── Ask: what it would call next, what left, what ended ──▶ keeper
//	       ◀── Give: permits, and the ask that was heard last ──
//	       ◀── Cool: a wave, or the end; what was given before is void ──
//
// Messages may be lost, doubled and late: an Ask says all that is not known to have been heard,
// a Give is for one life of one worker, and numbers are never used twice within an epoch.
package permit
