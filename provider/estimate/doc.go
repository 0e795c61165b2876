// Package estimate says before a call how many tokens it will take. It counts those of the
// request that the model reads, and the most that the request lets it write.
//
// It promises one pass over a body and no allocation, an answer for every text, and counts
// near those of OpenAI's published tokenizer for prose, code, JSON and digits.
//
//	body ──Request──▶ walk over its members ──▶ prompt = messages + tools + pictures …
//	                        │                   most   = max_tokens · n
//	text ──Text─────────────┴──▶ automaton over its characters ──▶ tokens
//
// A lane's charge rule (limiter.Charge) turns the two into a cost, and usage corrects it.
package estimate
