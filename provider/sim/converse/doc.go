// Package converse is the simulated provider's face in Bedrock's dialect.
//
//	POST /model/{id}/converse         the id is escaped: one segment, whatever is in it
//	POST /model/{id}/converse-stream  the same in frames with checksums
//	POST /model/{id}/invoke           embeddings: of Titan if the id says so, else of Cohere
//
// It wants Authorization: a Bedrock API key as Bearer, or a signature of AWS's version 4. Of
// a signature it reads the access key and demands its parts; whether it is right it does not
// know, for it has no secrets. The key that counts is the access key.
//
// A name that is not in the API is refused, which is stricter than AWS is known to be: a
// field that is passed over in silence would be a mistake of the client's that no test sees.
//
// Errors have their name in x-amzn-errortype. There are no headers of limits, and Bedrock's
// own throttling names no wait; a server that is to name waits sends Retry-After. What a
// call is charged is what it reads and the most that it may write, 4,096 tokens if it does
// not say.
package converse
