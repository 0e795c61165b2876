// Package settings holds the flags of headrace run, which other commands share, and all that sets
// them: the command line, the environment and the file of --config.
//
// It promises that names, defaults and checks are the same for every command. It opens no file of
// a run and calls nobody. Nothing in its errors contains a key.
//
//	command line ─▶ environment ─▶ file of --config ─▶ Complete: vendor, place, checks
//	                                │                      │
//	                                │                      ├─▶ VendorFlags: the provider, its address and its dialect
//	                                │                      ├─▶ InputFlags: how to read a line, and for which provider
//	                                │                      ├─▶ NetworkFlags, headers, prices
//	                                │                      └─▶ the files of a run, and the command that continues it
//	                                └─▶ settings of all lanes, which have no flag (lanes.go)
//
// Groups name flags by what they are about. Another main takes some groups, and the help shows
// each group under its heading.
package settings
