// Package clients calls headrace sim with the clients that providers publish for Go: a success, a
// refusal for the rate, and an overload, each read in their own types. With those and with the
// clients for Node.js it reads answers as streams: whole, refused, and broken in the middle.
//
//	openai-go ──────────┬─▶ headrace sim --dialect openai     /v1, /openai/v1, /openai/deployments
//	anthropic-sdk-go ───┼─▶ headrace sim --dialect anthropic
//	genai ──────────────┼─▶ headrace sim --dialect gemini     AI Studio's addresses, and Vertex's
//	bedrockruntime ─────┴─▶ headrace sim --dialect converse   signed, and by a bearer key
//
//	a chat ─▶ FromChat ─▶ their own types of a request ─▶ the same body
//
// The tests of headrace's own clients use only what those clients read without a complaint.
package clients
