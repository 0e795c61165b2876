// Package converse is the simulated provider's face in Bedrock's dialect.
//
//	POST /model/{id}/converse         the id is escaped: one segment, whatever is in it
//	POST /model/{id}/converse-stream  the same in frames with checksums
//	POST /model/{id}/invoke           embeddings: of Titan if the id says so, else of Cohere
//
// It demands Authorization: a Bedrock API key as Bearer, or a signature of AWS's version 4. It
// reads the access key of a signature and demands its parts. It cannot check the signature, as
// it has no secrets. The key that counts is the access key.
//
// It refuses a name that is not in the API, which is stricter than AWS is known to be. If such a
// field were ignored, no test would see the client's mistake.
//
// Errors have their name in x-amzn-errortype. There are no headers of limits, and Bedrock's
// own throttling names no wait; a server that must name waits sends Retry-After. A call is
// charged for what it reads and the most that it may write, 4,096 tokens if it names no bound.
package converse
