// Package fleet calls the provider of each lane: it has a client for every lane, and a
// call goes to that of the lane into which it was let.
//
// It promises that a call of a lane that it does not have goes nowhere.
//
//	batch: a call is let into ─▶ Request.Lane ─▶ Fleet.Do ─┬─▶ openai   client of its own: address,
//	a lane (batch.LaneFrom)      "azure/gpt-5"             ├─▶ azure    dialect, key
//	                                                       └─▶ claude
package fleet
