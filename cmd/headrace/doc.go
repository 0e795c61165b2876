// Command headrace runs prompt files against rate-limited model APIs, on one machine.
//
// It promises what package command does, and it needs no more modules than that. A user who
// imports the library, or builds this command, fetches nothing that only many machines need.
//
//	main ─▶ internal/command.Main ─▶ exit code
package main
