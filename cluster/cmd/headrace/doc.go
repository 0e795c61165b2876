// Command headrace is the full command: all that the light one has, and a batch that runs on many
// machines under one limit.
//
// It promises that where a word or a flag is the light command's, it means the same here.
//
//	main ─▶ internal/command.Main ─┬─▶ run, plan, status, …
//	                               └─▶ worker, hub, submit, jobs, limits, cluster, run --cluster ─▶ node
package main
