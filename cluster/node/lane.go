package node

import "strings"

// A worker's lane is one job under one limit, so that the keeper can share a limit among jobs
// and the core need not know of them.

// laneSeparator stands between the two names: no name of a job has it, and it is no character
// that a model's name has.
const laneSeparator = "\x1f"

// laneOf names the lane of a job under a limit.
func laneOf(limit, job string) string { return limit + laneSeparator + job }

// partsOf is laneOf undone.
func partsOf(lane string) (limit, job string) {
	limit, job, _ = strings.Cut(lane, laneSeparator)
	return limit, job
}
