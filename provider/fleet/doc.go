// Package fleet calls the provider of each lane: it has a client for every lane, and a
// call goes to the client of the lane that let it in.
//
// It promises that a call of an unknown lane goes nowhere.
//
//	batch: a call is let into ─▶ Request.Lane ─▶ Fleet.Do ─┬─▶ openai   client of its own: address,
//	a lane (batch.LaneFrom)      "azure/gpt-5"             ├─▶ azure    dialect, key
//	                                                       └─▶ claude
package fleet
