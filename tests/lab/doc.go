// Package lab tests the law of admission. It runs the real machine, in virtual time, against
// simulated providers of many shapes, and compares it with rival laws.
//
// It promises that a figure is the same each time: a world is determined by its provider,
// its batch, its law and its seed.
//
//	Provider ◀──arrivals── World ◀──Ready── Law: the machine, or a rival
//	    │                    ▲ └──answers, a hop later──▶ Ended
//	    │                  Batch
//	    └──▶ optimum ──────────▶ Figures: makespan over optimum, refusals, waste
//
// A [Scenario] is a world whose provider is a [sim.Model] and whose optimum is fluid. The
// folder gates has providers of other shapes, each with a clairvoyant, and bank has the many
// worlds that are made of them.
package lab
