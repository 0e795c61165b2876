// Package door says who may come in: it reads a request's host, origin, content type and token. It
// decides and does nothing else.
//
//	request ─▶ Host ─▶ Origin ─▶ Content-Type ─▶ token ─▶ a Client, or a Refusal
//
// It promises that a request from a page in a browser, or to a name that is not the server's, is
// refused before anything of it is read. Tokens are compared by their SHA-256 alone.
package door
