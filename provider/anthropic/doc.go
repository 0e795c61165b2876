// Package anthropic speaks Anthropic's dialect, messages: where to send what, and how to read
// answers. Claude on Foundry and on Bedrock's Mantle speaks it at other addresses, and
// so do vLLM, llama.cpp, Ollama and some gateways. catalog.Client makes a client for each.
//
//	                  POST /v1/messages
//	Request ─▶ Body ─▶ x-api-key, anthropic-version ─▶ the provider
//	(a stream: refused)                                     │
//	                                                        ▼
//	Reply ◀── {"type":"message", content, stop_reason, usage}   Answer, Text
//	*Error ◀─ anything else, as provider.ReplyIn reads it
//
// It promises that a body in Anthropic's words goes out byte for byte, plus the request for a
// stream if the client takes one. Such a stream is put together into a message. Input tokens
// include those of both caches, which Anthropic counts apart.
package anthropic
