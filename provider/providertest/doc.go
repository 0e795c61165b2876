// Package providertest holds what providers really answer, and the suite that
// every client of one must pass.
//
// It promises that each recording under testdata names its meaning, so that a provider's new
// habit is one more file. The recording is served over a real connection, byte by byte, to
// every client that runs the suite. provider.Classify reads it without one.
//
//	testdata/*.http ──parse──▶ Case ──▶ provider.Classify
//	  # kind: throttled          │
//	  # retry-after: 20s         └──▶ httptest server ──▶ the client under test
//	  HTTP/1.1 429 …                        │                     │
//	  headers, body                   calls counted        error, Recorder
//	                                        └──── compared ───────┘
//
// The texts are shortened from public documentation, SDK sources and issue
// threads; names of organisations and ids are invented. A recording says with "source"
// where it was found: documented by the maker, second-hand, or stated only. What is stated
// has the maker's status and name for the error in the shape that the maker says it has.
package providertest
