// Package bank is the bank of worlds that measures the law of admission: more than a hundred
// servers, each a row of gates, and the target of the law in each.
//
// It promises that a figure is the same each time. Every number of a world can be varied, so
// that a law cannot be made to fit the usual ones.
//
//	Vary ──▶ Worlds ──┬─▶ gates.Server ◀──calls── lab.World ◀── law
//	                  └─▶ clairvoyant ──▶ optimum ──▶ Result ──▶ Report: table, file, comparison
//
// Unless a world says otherwise it has 10,000 items, a limit of ten calls a second, and
// 1,000 calls allowed in flight. Its answers take a second (lognormal), its refusals 20 ms,
// and a hop 25 ms. Neither the user nor headers give a limit.
//
// Weak points are further worlds, in which the law was found to be weak. Reports add up
// their figures apart, so that the total of the worlds stays comparable.
//
// world.go defines a world, and traits.go the parts that it may have; worlds.go and more.go
// list the worlds. weak.go and weak_traits.go do the same for weak points, and target.go
// holds the targets. run.go measures, report.go prints, against.go compares, and trace.go
// shows one world second by second.
package bank
