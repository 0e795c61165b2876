// Package stream reads a stream that passes by: what it says of its usage and its end, and whether it
// stands between two events.
//
//	bytes ─▶ Tap ─▶ (nothing is changed or held back)
//	          ├─ Usage, Finish: of events that were short enough to be read
//	          └─ Between: a ping may stand here
//
// It promises to keep at most 64 KiB of a stream, whatever that is.
package stream
