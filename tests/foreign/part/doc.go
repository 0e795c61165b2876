// Package part finds what others wrote, where tests/foreign/run has put it, and starts it
// for the time of a test.
//
//	File ── a file in the folder that FOREIGN names, or the test is skipped
//	Serve ─ a process and its address ── ends with the test
package part
