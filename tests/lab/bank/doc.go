// Package bank is the bank of worlds that the law of admission is measured on:
// more than a hundred servers, each a row of gates, and what is asked of the law in each.
//
// It promises that a figure is the same each time, and that every number of a
// world can be varied, so that a law cannot be made to fit the usual ones.
//
//	Vary ──▶ Worlds ──┬─▶ gates.Server ◀──calls── lab.World ◀── law
//	                  └─▶ clairvoyant ──▶ optimum ──▶ Result ──▶ Report: table, file, comparison
//
// Unless a world says otherwise it has 10,000 items, a limit of ten calls a
// second, answers of a second (lognormal), refusals after 20 ms, a hop of 25 ms,
// and 1,000 calls allowed in flight; nothing is told, neither by the user nor by
// headers.
//
// Weak points are further worlds, in which the law was found to be weak. Reports add
// their figures up apart, so that the total of the worlds stays comparable.
//
// world.go says what a world is, traits.go what it may be made of; worlds.go and
// more.go list them, weak.go and weak_traits.go do the same for weak points, and
// target.go says what is asked. run.go measures, report.go prints, against.go
// compares, and trace.go tells one world second by second.
package bank
