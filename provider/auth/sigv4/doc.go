// Package sigv4 signs requests for AWS, with Signature Version 4: a signature of the body, the
// path and the time proves who sends them, and no key is sent. It is a [auth.Source].
//
// It promises that it signs exactly what is sent. The path goes out as AWS's own clients send
// it. So every check of the signature reads a model's id with ":" or "/" in it, or an ARN, in
// the same way. AWS's own signer does the signing itself; nothing else of its SDK is in use. If
// a signature is refused because the clock is wrong, the answer's date corrects the clock, and
// the call is sent once more.
//
//	                          ┌── body, its hash
//	request ──▶ path, escaped ┼── host, content type, time, session token
//	                          └── region, service, secret
//	                                   │
//	                                   ▼
//	       Authorization: AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…
package sigv4
