// Package purity is for the tests of packages that decide: what they import and name shows that they start nothing, wait
// for nothing, ask no clock and draw no chance but of what they are given.
//
//	purity_test.go of such a package ─ Check ─▶ its files, as text ─▶ a fault for each import that is not allowed,
//	                                                                 each goroutine, channel, select, clock and chance
package purity
