// Package auth proves to a provider who sends a request: by a key in a header, by a key in
// a file that somebody else keeps fresh, by tokens that a source gives out, or not at all.
//
// It promises that no error contains a key or a token, and that fresh ones are used. After a
// refusal it looks for a new key once more before it reports the refusal.
//
//	Key ─────┐                          headers of the request
//	File ────┤   ┌────────┐  Apply  ┌────────────────────────────┐
//	Tokens ──┼──▶│ Source │────────▶│ Authorization, x-api-key … │──▶ the provider
//	sigv4 ───┤   └────────┘         └────────────────────────────┘       │
//	None ────┘       ▲                                                   │
//	                 └───────────────── Refused ◀── 401, 403 ────────────┘
//
// Each is a Source, and Join makes one of several, as a gateway needs a key of its own.
// Signatures for AWS are in provider/auth/sigv4 and tokens of Google in
// provider/auth/google, because of their imports.
package auth
