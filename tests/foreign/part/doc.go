// Package part finds the programs of others, where tests/foreign/run has put them, and
// starts them for the time of a test.
//
//	File ── a file in the folder that FOREIGN names, or the test is skipped
//	Serve ─ a process and its address ── ends with the test
package part
