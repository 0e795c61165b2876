// Package chattest makes chat bodies for tests of translation.
//
//	Body(rng, With) ── a random body of the subset ──▶ FromChat of each dialect
//	                                              └──▶ somebody else's translator
//
// The command in the folder bodies writes such bodies, and each dialect's translation of them, as
// lines of JSON, for a comparison with another author's.
package chattest
