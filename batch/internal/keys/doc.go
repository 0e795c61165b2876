// Package keys makes the keys that tie a result to its question, and keeps sets of them.
//
// It promises that a key, once written, is made again from the same question for ever,
// and that two questions do not share one; and that a Set takes little more memory than
// the bytes of its entries.
//
//	endpoint ┐
//	body     ├─▶ Maker: canonical form ─▶ SHA-256 ─▶ Sum ─▶ Set
//	id, or n ┘
package keys
