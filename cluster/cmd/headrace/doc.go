// Command headrace is the full command: it has everything of the light one, and runs a batch on many
// machines under one limit.
//
// A word or flag that the light command has too means the same here.
//
//	main ─▶ internal/command.Main ─┬─▶ run, plan, status, …
//	                               └─▶ worker, hub, submit, jobs, limits, cluster, run --cluster ─▶ node
package main
