// Package account holds the provider that a run calls and what proves the caller's identity to
// it: the key, a signature or fetched tokens, headers and certificates.
//
// It promises that a key goes only to the vendor's own hosts, to this machine, and to where the
// user has named it. Each unexpected destination is a notice. No call is made before the run
// begins.
//
//	Connect ─ network ─ proof ─ headers ─▶ Account ─▶ Do: the calls
//	                                          ├─▶ Limit: the quota, among many machines
//	                                          ├─▶ ServerOf: what a saved state is about
//	                                          └─▶ MeetNeighbours: other runs here with the same key
package account
