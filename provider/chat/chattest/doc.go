// Package chattest makes chat bodies for tests of translation.
//
//	Body(rng, With) ── a random body of the subset ──▶ FromChat of each dialect
//	                                              └──▶ somebody else's translator
//
// The command bodies beside it writes such bodies, and what each dialect makes of them, as
// lines of JSON, for whoever compares them with another hand's.
package chattest
