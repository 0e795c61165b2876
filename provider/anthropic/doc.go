// Package anthropic speaks Anthropic's dialect, messages: it says what is sent where and how
// answers are read. Claude on Foundry and on Bedrock's Mantle speaks it at other addresses, and
// so do vLLM, llama.cpp, Ollama and some gateways. catalog.Client makes a client for each.
//
//	                  POST /v1/messages
//	Request ─▶ Body ─▶ x-api-key, anthropic-version ─▶ the provider
//	(a stream: refused)                                     │
//	                                                        ▼
//	Reply ◀── {"type":"message", content, stop_reason, usage}   Answer, Text
//	*Error ◀─ anything else, as provider.ReplyIn reads it
//
// It promises that a body in Anthropic's words goes out byte for byte, plus what asks for a stream
// if the client takes one, that such a stream is put together into a message, and that input tokens
// have those of both caches in them, which Anthropic counts apart.
package anthropic
