// Package openai speaks OpenAI's dialect: where to send what, and how to read answers
// (Dialect). It makes raw calls for prompt files (Do), and typed ones for Go programs
// (Chat, Embed, over sashabaranov/go-openai), all through the engine of provider/wire.
//
// A raw body goes out byte for byte as it came in, plus the request for a stream if the client
// takes one (Config.Stream). A typed request would lose a temperature of 0 and every unknown
// field.
//
//	Chat, Embed ─▶ go-openai ─▶ doer ─┐
//	                                  ├─▶ wire.Client ─▶ the wire
//	Do ──────────▶ Dialect ───────────┘        │
//	                                           ▼
//	            one verdict for all three: provider.ReplyOf
//
// go-openai makes requests and reads no answers. Its errors lose the headers and most of the
// body, and it does not recognise a 200 with an error object.
package openai
