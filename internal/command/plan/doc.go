// Package plan says what a prompt file would cost and how long it would take.
//
// It promises that nothing is called and nothing is read but the tables it was built with
// and the prices it is given; that an unknown price is never one of nothing; and that
// every figure that was assumed is named, with the flag by which it can be told.
//
//	prompts.Request ─Take─▶ Plan ─Foresee─▶ forecast: how long as it is, and with half and
//	                         │  ▲                    twice of each limit
//	                         │  └─ price.Table, and Tier: tiers.json; over them what the user tells
//	                         └─▶ Text for a person, JSON for programs
//
// The names of JSON's fields are a promise: scripts read them. What a file is and which of
// its lines are bad is for the command to see, as it does for a run.
package plan
