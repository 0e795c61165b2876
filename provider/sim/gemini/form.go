package gemini

import (
	"strings"

	"github.com/headrace/headrace/provider/sim/face"
)

// camel returns the name of a field as in the forms: Google takes both spellings.
func camel(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

var (
	text    = face.Form{Is: face.String}
	flag    = face.Form{Is: face.Bool}
	number  = face.Form{Is: face.Number}
	integer = face.Form{Is: face.Integer}
	list    = face.Form{Is: face.Array}
	object  = face.Form{Is: face.Object}
	texts   = face.Form{Is: face.Array, Items: &text}
)

// message returns the form of an object with fields, as in protocol buffers.
func message(fields map[string]face.Form) face.Form {
	return face.Form{Is: face.Object, Fields: fields, Spell: camel}
}

var part = message(map[string]face.Form{
	"text": text, "thought": flag, "thoughtSignature": text, "partMetadata": object,
	"inlineData":   message(map[string]face.Form{"mimeType": text, "data": text, "displayName": text}),
	"fileData":     message(map[string]face.Form{"mimeType": text, "fileUri": text, "displayName": text}),
	"functionCall": object, "functionResponse": object, "executableCode": object, "codeExecutionResult": object,
	"toolCall": object, "toolResponse": object,
	"videoMetadata": object, "mediaResolution": {},
})

var content = message(map[string]face.Form{"role": text, "parts": {Is: face.Array, Items: &part}})

var thinking = message(map[string]face.Form{"includeThoughts": flag, "thinkingBudget": integer, "thinkingLevel": text})

// maxStops is the largest number of stop sequences in a call.
const maxStops = 5

var config = message(map[string]face.Form{
	"candidateCount": integer, "maxOutputTokens": integer, "seed": integer, "logprobs": integer,
	"temperature": {Is: face.Number, Least: 0, Most: 2}, "topP": {Is: face.Number, Least: 0, Most: 1}, "topK": number,
	"presencePenalty": number, "frequencyPenalty": number,
	"stopSequences":    {Is: face.Array, Items: &text, Least: 0, Most: maxStops},
	"responseMimeType": text, "responseSchema": object, "responseJsonSchema": {}, "responseModalities": texts,
	"responseFormat": object, "responseLogprobs": flag, "thinkingConfig": thinking, "speechConfig": object, "mediaResolution": text,
	"enableEnhancedCivicAnswers": flag, "imageConfig": object, "audioTimestamp": flag, "enableAffectiveDialog": flag,
	"routingConfig": object, "modelSelectionConfig": object,
})

var generation = map[string]face.Form{
	"contents": {Is: face.Array, Items: &content}, "systemInstruction": content, "generationConfig": config,
	"safetySettings": list, "tools": list, "toolConfig": object, "cachedContent": text,
	"labels": object, "serviceTier": text, "store": flag,
}

// one is a request for the vector of one text.
var one = message(map[string]face.Form{
	"model": text, "content": content, "taskType": text, "title": text, "outputDimensionality": integer,
	"embedContentConfig": object,
})

// forms are of whole requests, by operation.
var forms = map[string]face.Form{
	generate:   message(generation),
	stream:     message(generation),
	embed:      one,
	embedBatch: message(map[string]face.Form{"requests": {Is: face.Array, Items: &one}}),
}
