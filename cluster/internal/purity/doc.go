// Package purity helps to test packages that decide. Their imports and names show that they start nothing, wait for
// nothing, and use no clock or chance except those that their callers pass.
//
//	purity_test.go of such a package ─ Check ─▶ its files, as text ─▶ a fault for each import that is not allowed,
//	                                                                 each goroutine, channel, select, clock and chance
package purity
