package estimate

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

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
func Text(text []byte) float64 {
	var s scale
	s.add(text)
	return s.tokens()
}

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

// weighString weighs the text between the quotes of a string, escapes undone.
func weighString(text []byte) float64 {
	var s scale
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			s.add(text)
			return s.tokens()
		}
		s.add(text[:i])
		var room [utf8.UTFMax]byte
		char, size := rawjson.AppendEscaped(room[:0], text[i:])
		s.add(char)
		text = text[i+size:]
	}
}

// Request estimates Prompt and MaxOutput in one walk over the body. The rule of a lane turns the
// two into what a provider draws from its limits for such a call.
//
// The walk trusts that the body is JSON: on anything else it ends somewhere, and no more.
func Request(body []byte) (prompt, most float64) {
	if body = body[rawjson.SkipSpace(body, 0):]; !rawjson.IsObject(body) {
		return 0, 0
	}
	answerCount, queryTokens, documentCount := 1.0, 0.0, 0.0
	for m := rawjson.WalkIn(body); m.Next(); {
		switch string(m.Name) {
		case "messages", "contents":
			prompt += messages(&m)
			documentCount = math.Inf(-1) // a chat, in which query and documents are anything
		case "input", "prompt", "instructions", "system", "systemInstruction", "system_instruction":
			prompt += content(&m, maxNesting)
		case "query":
			queryTokens += content(&m, maxNesting)
		case "documents":
			tokens, count := documents(&m)
			prompt, documentCount = prompt+tokens, documentCount+count
		case "tools", "functions", "response_format", "text", "toolConfig":
			prompt += Text(m.Skip())
		case "generationConfig", "generation_config", "inferenceConfig":
			bound, count := nativeBound(m.Skip())
			most, answerCount = max(most, bound), max(answerCount, count)
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			most = max(most, rawjson.Number(m.Skip()))
		case "n", "best_of":
			answerCount = max(answerCount, rawjson.Number(m.Skip()))
		default:
			m.Skip()
		}
	}
	prompt += queryTokens * max(1, documentCount) // a reranker reads the query with each document
	if most == 0 {
		return prompt, 0 // also for infinitely many answers
	}
	return prompt, most * answerCount
}

// nativeBound returns the bound on the output, and the number of answers, in the words of Gemini
// and Converse.
func nativeBound(config []byte) (maxOutput, answers float64) {
	if !rawjson.IsObject(config) {
		return 0, 0
	}
	for m := rawjson.WalkIn(config); m.Next(); {
		switch string(m.Name) {
		case "maxOutputTokens", "max_output_tokens", "maxTokens":
			maxOutput = max(maxOutput, rawjson.Number(m.Skip()))
		case "candidateCount", "candidate_count":
			answers = max(answers, rawjson.Number(m.Skip()))
		default:
			m.Skip()
		}
	}
	return maxOutput, answers
}

// messages weighs the messages of a chat. A value that is neither a list nor an object counts as
// one message.
func messages(w *rawjson.Walk) (tokens float64) {
	if c := w.Ahead()[0]; c != '[' && c != '{' {
		return messageTokens + content(w, maxNesting)
	}
	in := w.Into()
	for in.Next() {
		tokens += messageTokens + content(&in, maxNesting)
	}
	w.Leave(&in)
	return tokens
}

// documents estimates the tokens of a list of documents, and counts the documents.
func documents(w *rawjson.Walk) (tokens, count float64) {
	if w.Ahead()[0] != '[' {
		return content(w, maxNesting), 1
	}
	in := w.Into()
	for ; in.Next(); count++ {
		tokens += content(&in, maxNesting-1)
	}
	w.Leave(&in)
	return tokens, count
}

// content estimates the tokens that a model reads in a value: those of all its strings, except the
// words that only steer.
func content(w *rawjson.Walk, depth int) float64 {
	switch c := w.Ahead()[0]; {
	case c == '"':
		return weighString(rawjson.Inner(w.Skip()))
	case c == '-' || c >= '0' && c <= '9': // a token's id
		w.Skip()
		return 1
	case depth == 0 || c != '[' && c != '{':
		w.Skip()
		return 0
	case c == '{':
		return part(w, depth)
	}
	var tokens float64
	in := w.Into()
	for in.Next() {
		tokens += content(&in, depth-1)
	}
	w.Leave(&in)
	return tokens
}

// part weighs an object, which may be a message's part without text: the detail of a picture
// counts wherever it stands.
func part(w *rawjson.Walk, depth int) (tokens float64) {
	var kindText, detail, imageDetail []byte // as they stand, nil before they come
	var kind kindOfPart
	in := w.Into()
	for in.Next() {
		switch string(in.Name) {
		case "type":
			kindText = earliest(kindText, in.Skip())
			kind = kindBy(kindText)
			continue
		case "role", "id", "cache_control", "index", "cachePoint", "thoughtSignature":
			in.Skip()
			continue
		case "inlineData", "inline_data", "fileData", "file_data", "image", "document", "video", "audio":
			if rawjson.IsObject(in.Ahead()) { // Gemini's parts and Converse's blocks have no type
				in.Skip()
				tokens += pictureTokens
				continue
			}
		case "detail":
			detail = earliest(detail, in.Ahead()[:rawjson.SkipValue(in.Ahead(), 0)])
		case "image_url":
			imageDetail = earliest(imageDetail, rawjson.Lookup(in.Ahead(), "detail"))
		}
		if kind == noAttachment {
			tokens += content(&in, depth-1)
		} else {
			in.Skip() // a picture may be megabytes that are not text
		}
	}
	w.Leave(&in)
	switch {
	case kind == noAttachment:
		return tokens
	case kind == picture && (rawjson.IsWord(detail, "low") || rawjson.IsWord(imageDetail, "low")):
		return lowDetailTokens
	}
	return pictureTokens
}

// earliest returns had, unless it is nil: of a name that comes twice the first counts.
func earliest(had, value []byte) []byte {
	if had != nil {
		return had
	}
	return value
}

// The kinds of a part, as far as their price goes.
type kindOfPart uint8

const (
	noAttachment kindOfPart = iota
	picture
	soundOrFile
)

// kindBy returns the kind of a part by the type that the part has in the body.
func kindBy(typ []byte) kindOfPart {
	for _, word := range []string{"image_url", "input_image", "image"} {
		if rawjson.IsWord(typ, word) {
			return picture
		}
	}
	for _, word := range []string{"input_audio", "file", "input_file", "document"} {
		if rawjson.IsWord(typ, word) {
			return soundOrFile
		}
	}
	return noAttachment
}
