// Package s3test is a server of S3 for tests, with faults on demand.
//
// It promises that what was answered is what a real one answers: versitygw stores in a folder
// and checks If-None-Match under a lock. Before it stands a proxy that a Rule tells what to do to a
// request: refuse it, hold it, lose it, lose its answer, or break it off in the middle.
//
//	test ─▶ store ─▶ proxy: Rule ─▶ versitygw, a child of the test, in a folder of its own
//	                   └─ 503, 409, lost, cut …
//
// The server is a process of its own, as it changes the folder that it runs in and leaves
// goroutines behind. It is the test's own binary: its TestMain calls Serve first.
// What it knows of an object beside its bytes lies in extended attributes, which the folder of
// temporary files must have.
package s3test
