// Command headrace runs prompt files against rate-limited model APIs, on one machine.
//
// It promises what package command does, and to need no more modules than that: whoever
// imports the library, or builds this, fetches nothing that only many machines need.
//
//	main ─▶ internal/command.Main ─▶ exit code
package main
