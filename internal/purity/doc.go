// Package purity checks the source of packages that decide: they start nothing, wait for nothing, and use no clock
// or chance except those that their callers pass. Only tests import it.
//
//	a test of such a package ─ Pure, LockFree ─▶ its files, as text ─▶ a fault for each import that is not allowed,
//	                                                                  each goroutine, channel, lock, clock and chance
//
// It is a package of its own because the tests of several packages need it.
package purity
