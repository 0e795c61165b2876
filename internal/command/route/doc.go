// Package route says which lanes of the file of --config take which line of an input.
//
// It promises that a line only goes to lanes of its pool that serve its model and have its
// operation, and that a line which no lane takes is known before the first call.
//
//	line: model, endpoint, body
//	  │ the first pool whose lines it is one of
//	  ▼
//	pool mini ─▶ lanes that serve the model ─▶ as it is, or translated ─▶ Route mini/gpt-5-mini
//	                                                                      tiers: azure/mini-prod · openai/gpt-5-mini
//
// A route is a pool of the run. Its lanes are named by what the provider counts: NAME/MODEL, NAME,
// or the quota of several lanes.
package route
