// Package s3test is a server of S3 for tests, with faults on demand.
//
// Its answers are those of a real server: versitygw stores in a folder and checks If-None-Match
// under a lock. A proxy stands before it. A Rule says what the proxy does to a request: refuse it,
// hold it, lose it, lose its answer, or break it off in the middle.
//
//	test ─▶ store ─▶ proxy: Rule ─▶ versitygw, a child of the test, in a folder of its own
//	                   └─ 503, 409, lost, cut …
//
// The server is a process of its own, as it changes the folder that it runs in and leaves
// goroutines behind. It runs the test's own binary: its TestMain calls Serve first. An object's
// metadata lies in extended attributes, which the folder of temporary files must support.
package s3test
