// Package lanes makes headrace lanes, which shows the lanes and pools in the file of --config.
//
// It promises that it calls nothing, unless --try asks for one call of one token for each lane. No
// key is shown.
//
//	file ─ settings ─▶ a row for each lane ─▶ standard output
//	          └ --try ─ account ─▶ a call for each lane ─▶ status, latency, limits, organisation
package lanes
