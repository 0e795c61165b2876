// Package keys makes the keys that tie a result to its question, and keeps sets of them.
//
// A key, once written, is made again from the same question for ever, and two questions do
// not share one. A Set takes little more memory than the bytes of its entries.
//
//	endpoint ┐
//	body     ├─▶ Maker: canonical form ─▶ SHA-256 ─▶ Sum ─▶ Set
//	id, or n ┘
package keys
