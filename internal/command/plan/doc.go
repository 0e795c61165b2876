// Package plan says what a prompt file would cost and how long it would take.
//
// It promises that it calls nothing, and reads only the tables it was built with and the
// prices it is given. An unknown price never counts as 0. Every assumed figure is named,
// with the flag that sets it.
//
//	prompts.Request ─Take─▶ Plan ─Foresee─▶ forecast: how long as it is, and with half and
//	                         │  ▲                    twice of each limit
//	                         │  └─ price.Table, and Tier: tiers.json; over them what the user sets
//	                         └─▶ Text for a person, JSON for programs
//
// Over the lanes of a file a route of lines takes the place of a model, and the forecast divides its
// items among its lanes: fleet.go.
//
// The names of JSON's fields are a promise: scripts read them. The command decides what a
// file is and which of its lines are bad, as it does for a run.
package plan
