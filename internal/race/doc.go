// Package race tells tests whether the race detector is on, as some would take too long
// under it.
//
//	value with one owner ── a tenth of the worlds: there is nothing to race
//	goroutines           ── all of it
package race
