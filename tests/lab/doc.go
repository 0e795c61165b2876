// Package lab puts the law of admission to the test: the real machine, in
// virtual time, against simulated providers of many shapes, and rival laws
// beside it.
//
// It promises that a figure is the same each time: a world is decided by its
// scenario, its law and its seed.
//
//	Scenario ──▶ provider (sim.Model)  ◀──arrivals── world ◀──Ready── Law: the machine, or a rival
//	    │                                   │   ──answers, a hop later──▶ Ended
//	    └──▶ fluid optimum ──────────────▶ Figures: makespan over optimum, refusals, waste
package lab
