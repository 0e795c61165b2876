// Package all lists the dialects that there are, each with the face of the simulated provider
// that speaks it. Whoever wants one of them imports that package; whoever wants to be told
// its name when the program runs imports this one.
//
//	provider/openai,    provider/sim/openai ────┐
//	provider/anthropic, provider/sim/anthropic ─┤
//	provider/gemini,    provider/sim/gemini ────┼──▶ one slice ──▶ All, Named
//	provider/converse,  provider/sim/converse ──┘
//
// It promises that the slice is the only place where a dialect is registered, and that no
// package registers itself.
package all
