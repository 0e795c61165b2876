// Package all lists all dialects, each with the face of the simulated provider that speaks it.
// A program that needs one dialect imports that package. A program that gets the dialect's name
// when it runs imports this one.
//
//	provider/openai,    provider/sim/openai ────┐
//	provider/anthropic, provider/sim/anthropic ─┤
//	provider/gemini,    provider/sim/gemini ────┼──▶ one slice ──▶ All, Named
//	provider/converse,  provider/sim/converse ──┘
//
// It is a package of its own because it alone needs both the dialects and the simulator.
//
// It promises that the slice is the only place where a dialect is registered, and that no
// package registers itself.
package all
