// Package parttest has the checks that tests of parts, and of the laws made of parts, share.
//
//	part ─Of─▶ Copies: a copy that is taught leaves the original as it was
//	hot methods ─▶ Allocate, Benchmark
//	law ─▶ Contents: all that it holds, to be compared
//	Noon, At, Seeded: the time and the chance of tests; Want, Near: figures
//
// It promises nothing to production code: only tests import it.
// It is a package of its own because the tests of several packages need it.
package parttest
