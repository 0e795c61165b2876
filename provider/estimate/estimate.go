package estimate

import "github.com/headrace/headrace/provider"

// Text estimates how many tokens a model reads in a text, which should be
// UTF-8 (stray bytes count as something rare). The answer is never negative, and
// 0 only for a text without anything but single spaces.
//
// A tokenizer cuts a text into words, groups of three digits, runs of
// punctuation and runs of one script, and each of these into pieces that are the
// longer, the commoner they are. So does this: one pass, a weight for the first
// character of such a run and a weight for each further one. The weights are a
// least-squares fit to counts by OpenAI's published o200k_base, of prose in 32
// languages, code, JSON, logs, digits and base64. Other text of these kinds was
// estimated −12 % to +12 % off (Python +18 %, random base64 −24 %), where four bytes a
// token are −63 % to +78 % off. On a few words anything is possible.
//
// By the older cl100k_base, English, code and digits are the same within 2 %. All
// else is more tokens there: other Latin scripts up to 1.5 times, CJK 1.2 to 1.4,
// Cyrillic 1.3 to 1.6, Arabic, Greek and Thai 2, Indic scripts and Georgian 3 to 4.5.
// The ratio of real to estimated tokens of a model, once it is known, corrects both.
func Text(text []byte) float64 { return weigh(text) }

// The costs of a request besides its text, in tokens.
const (
	// messageTokens frame one message of a chat: its role and the marks around it.
	// OpenAI's cookbook counts three or four, by model, and three once for the answer.
	messageTokens = 4

	// pictureTokens is OpenAI's published count for a picture of 1024 × 1024 in high
	// detail (85, and 170 for each of four tiles); its size cannot be seen from here.
	// Sound and files are taken for one picture each.
	pictureTokens = 765

	// lowDetailTokens is the published count for a picture in low detail.
	lowDetailTokens = 85

	// maxNesting is deeper than any message is: deeper parts count as nothing.
	maxNesting = 32
)

// Prompt estimates the tokens that a request's body makes a model read: messages and
// their parts, system text, instructions, input and prompt, query and documents, tools
// and schemas, as chat completions, completions, Responses, embeddings, rerank and
// Anthropic's messages write them. The query of a rerank counts with each document, as
// rerankers read it. Input that is token ids already is counted exactly. A picture counts
// 765 tokens, 85 in low detail; a sound or a file 765. A body that is no JSON
// object counts 0.
func Prompt(body []byte) float64 {
	prompt, _ := Request(body)
	return prompt
}

// For is Request for the body of an operation. If the model only reads, most is one token: 0
// would mean that nothing bounds the output, for which some rules assume thousands.
func For(operation string, body []byte) (prompt, most float64) {
	if prompt, most = Request(body); most == 0 && provider.OnlyReads(operation) {
		most = 1
	}
	return prompt, most
}

// MaxOutput returns the most tokens that a request's body lets the model write. That is
// max_tokens, under any of that field's names, for each of n answers. It returns 0 if the body
// does not say.
func MaxOutput(body []byte) float64 {
	_, most := Request(body)
	return most
}
