// Package fleet calls the provider of each lane. It has a client for every lane, and a call
// goes to the client of the lane that let it in.
//
// It promises that a call of an unknown lane goes nowhere, if there are several lanes. A single
// lane takes every call.
//
//	batch: a call is let into ─▶ Request.Lane ─▶ Fleet.Do ─┬─▶ openai   client of its own: address,
//	a lane (batch.LaneFrom)      "azure/gpt-5"             ├─▶ azure    dialect, key
//	                                                       └─▶ claude
//
// It is a package of its own, though small: a user of the library needs it without the command.
package fleet
