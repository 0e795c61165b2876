// Package chattest makes chat bodies for tests of translation.
//
//	Body(rng, With) ── a random body of the subset ──▶ FromChat of each dialect
//	                                              └──▶ somebody else's translator
//
// tests/foreign compares each dialect's translation of such bodies with another author's.
package chattest
