// Package sigv4 signs requests for AWS, with Signature Version 4: a signature of the body, the
// path and the time proves who sends them, and no key is sent. It is a [auth.Source].
//
// It promises that what is signed is what is sent: the path goes out as AWS's own clients
// send it, so that a model's id with ":" or "/" in it, or an ARN, is read alike by whoever
// checks the signature. The signing itself is done by AWS's own signer; nothing else of its
// SDK is in use. A signature that is refused because the clock is wrong puts the clock right, by
// the date of the answer, and the call is sent once more.
//
//	                          ┌── body, its hash
//	request ──▶ path, escaped ┼── host, content type, time, session token
//	                          └── region, service, secret
//	                                   │
//	                                   ▼
//	       Authorization: AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…
package sigv4
