package converse

import "github.com/headrace/headrace/provider/sim/face"

var (
	text   = face.Form{Is: face.String}
	object = face.Form{Is: face.Object}
	list   = face.Form{Is: face.Array}
	share  = face.Form{Is: face.Number, Least: 0, Most: 1}
)

func structure(need []string, fields map[string]face.Form) face.Form {
	return face.Form{Is: face.Object, Need: need, Fields: fields}
}

var cachePoint = structure([]string{"type"}, map[string]face.Form{"type": {Is: face.String, Words: []string{"default"}}, "ttl": text})

// media is a picture, document, film or sound.
var media = structure([]string{"source"}, map[string]face.Form{
	"format": text, "name": text, "context": text, "citations": object, "source": object,
})

// block is a union: a member and no more.
var block = structure(nil, map[string]face.Form{
	"text": text, "image": media, "document": media, "video": media, "audio": media,
	"toolUse":      structure([]string{"toolUseId", "name", "input"}, map[string]face.Form{"toolUseId": text, "name": text, "input": {}, "type": text}),
	"toolResult":   structure([]string{"toolUseId", "content"}, map[string]face.Form{"toolUseId": text, "content": list, "status": text, "type": text}),
	"guardContent": object, "cachePoint": cachePoint, "reasoningContent": object, "citationsContent": object, "searchResult": object,
})

var message = structure([]string{"role", "content"}, map[string]face.Form{
	"role": {Is: face.String, Words: []string{"user", "assistant"}}, "content": {Is: face.Array, Items: &block},
})

var systemBlock = structure(nil, map[string]face.Form{"text": text, "guardContent": object, "cachePoint": cachePoint})

// maxStops is the largest number of stop sequences in a call, and minTokens the least bound.
const (
	maxStops  = 2500
	minTokens = 1
)

var inference = structure(nil, map[string]face.Form{
	"maxTokens": {Is: face.Integer, Least: minTokens}, "temperature": share, "topP": share,
	"stopSequences": {Is: face.Array, Items: &text, Least: 0, Most: maxStops},
})

var whole = structure(nil, map[string]face.Form{
	"messages": {Is: face.Array, Items: &message}, "system": {Is: face.Array, Items: &systemBlock}, "inferenceConfig": inference,
	"toolConfig":      structure([]string{"tools"}, map[string]face.Form{"tools": list, "toolChoice": object}),
	"guardrailConfig": object, "additionalModelRequestFields": {}, "promptVariables": object,
	"additionalModelResponseFieldPaths": list, "requestMetadata": object, "performanceConfig": object,
	"serviceTier": object, "outputConfig": object,
})
