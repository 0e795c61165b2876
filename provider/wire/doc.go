// Package wire makes the calls of every dialect: one engine that sends a request once, reads
// a bounded answer, follows redirects at home only, and keeps keys out of whatever it says.
//
// It promises one try per call, and one more only where what proves who calls was refused and
// there is something fresher; an error that is always a *provider.Error, at most
// Config.MaxBody bytes kept, no redirect to another host, and no secret in any error. A body
// in the dialect's own words goes out byte for byte as it came in, plus what asks for a stream.
//
// Answers that Config.Stream names are taken as streams. Their first byte stops the clock of the
// attempt, and silence ends them from there on. provider/stream puts them together.
//
//	provider.Request
//	      │  the operation is the dialect's ──▶ Path, Body ──┐
//	      │  a chat, and it can be put into it ─▶ FromChat ──┤
//	      │  embeddings, likewise ─────────▶ FromEmbeddings ─┤
//	      ▼                                                  ▼
//	  refused: nothing is sent        auth.Source ─▶ one request ─▶ provider.Transport ─▶ pool ─▶ the wire
//	                                                             (a redirect: http.Client, │
//	                                                              none to another host)    ▼
//	                                                                        the Recorder of the
//	                                                                        attempt
//	  provider.Reply ◀── Answer, Text of the dialect ◀── Exchange: status, headers, body,
//	  or *provider.Error                                 or what went wrong
//
// What a request of an operation has in common with all others (URL, headers) is made once
// where the model does not stand in the URL, and copied where what proves who calls is asked
// for each request.
package wire
