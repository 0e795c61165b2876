// Package wire makes the calls of every dialect. It is one engine: it sends a request once,
// reads a bounded answer, follows redirects at home only, and keeps keys out of all texts.
//
// It promises one try per call. It tries once more in two cases only. In one, the proof of who
// calls was refused and there is a fresher one. In the other, the server does not know the
// option that asks a stream for its usage. An error is always a *provider.Error, and no error
// contains a secret. It keeps at most Config.MaxBody bytes, and follows no redirect to another
// host. A body in the dialect's own words goes out byte for byte as it came in, plus the
// request for a stream.
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
// The parts that all requests of an operation share (URL, headers) are made once if the model is
// not in the URL. They are copied if the proof of who calls is made for each request.
package wire
