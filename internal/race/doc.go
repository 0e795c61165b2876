// Package race tells tests whether the race detector is on, as some would take too long
// under it.
//
//	value with one owner ── a tenth of the worlds: there is nothing to race
//	goroutines           ── all of it
//	what waits for a processor ── Late, how far this machine has fallen behind
//
// It is a package of its own because the tests of many packages need it.
package race
