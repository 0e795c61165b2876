// Package openai calls OpenAI and whatever speaks its dialect: typed calls for
// Go programs (Chat, Embed, over sashabaranov/go-openai) and raw ones for
// prompt files (Do, over net/http), both through one transport.
//
// It promises one try per call, an error that is always a *provider.Error, at
// most Config.MaxBody bytes read, no redirect to another host, and a key that is
// in no error. A raw body goes out byte for byte as it came in: through a typed
// request a temperature of 0 and every unknown field would be lost.
//
//	Chat, Embed ─▶ go-openai ─▶ doer ─┐
//	                                  ├─▶ fetch ─▶ provider.Transport ─▶ the wire
//	Do ───────────────────────────────┘     │      (a redirect: http.Client,  │
//	                                        │       none to another host)     ▼
//	                                        ▼                          the Recorder of
//	                          exchange: status, headers, body,         the attempt
//	                          or what went wrong
//	                                        │
//	                                        ▼
//	            one verdict for all three: provider.ReplyOf
//
// go-openai makes requests and reads no answers: its errors lose the headers and
// most of the body, and of a 200 with an error object they know nothing.
package openai
