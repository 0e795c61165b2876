package gemini

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// request is a call as Google reads it.
type request struct {
	face.Prompt
	address
	key    string
	sse    bool   // a stream comes as server-sent events
	thinks bool   // it asks to be shown the model's thoughts
	detail string // more on the complaint, as JSON
}

// maxEmbeds is the largest number of texts in one call.
const maxEmbeds = 100

// read reads a body; it returns for any body.
func (r *request) read(body string) {
	if !gjson.Valid(body) {
		r.Complain("", "Invalid JSON payload received. Unexpected end of string or token.")
		return
	}
	root := gjson.Parse(body)
	if flaw, flawed := forms[r.operation].Check(root); flawed {
		r.complainOf(flaw)
	}
	if !root.IsObject() {
		r.Complain("", "Invalid JSON payload received. Unknown name \"\": Root element must be a message.")
		return
	}
	switch r.operation {
	case embed:
		r.readText(root)
	case embedBatch:
		r.readTexts(fieldOf(root, "requests"))
	default:
		r.readTurns(root)
	}
}

// fieldOf returns the field of that name, in either spelling. Of several the last counts.
func fieldOf(object gjson.Result, name string) (value gjson.Result) {
	object.ForEach(func(key, v gjson.Result) bool {
		if camel(key.Str) == name {
			value = v
		}
		return object.IsObject()
	})
	return value
}

func (r *request) readText(root gjson.Result) {
	content := fieldOf(root, "content")
	if !content.IsObject() {
		r.Complain("content", "* EmbedContentRequest.content: contents is not specified\n")
	}
	r.Add(face.TextOf(content.Get("parts")))
}

// readTexts reads the requests of a batch, one text each. It complains of a batch that is empty or
// too long.
func (r *request) readTexts(requests gjson.Result) {
	count := 0
	requests.ForEach(func(_, item gjson.Result) bool {
		if count++; count > maxEmbeds {
			r.Complain("requests", fmt.Sprintf("* BatchEmbedContentsRequest.requests: at most %d requests can be in one batch\n", maxEmbeds))
			return false
		}
		r.readText(item)
		return true
	})
	if count == 0 {
		r.Complain("requests", "* BatchEmbedContentsRequest.requests: requests is not specified\n")
	}
}

// readTurns reads a request for content. It charges the system instruction, the tools and all
// turns; the last turn of the user's is answered.
func (r *request) readTurns(root gjson.Result) {
	contents, config := fieldOf(root, "contents"), fieldOf(root, "generationConfig")
	r.MaxTokens = max(0, fieldOf(config, "maxOutputTokens").Num)
	r.thinks = fieldOf(fieldOf(config, "thinkingConfig"), "includeThoughts").Bool()
	r.Charge(face.TextOf(fieldOf(root, "systemInstruction").Get("parts")))
	if tools := fieldOf(root, "tools"); tools.IsArray() {
		r.Charge(tools.Raw)
	}
	if contents.Get("#").Num == 0 {
		r.Complain("contents", "* GenerateContentRequest.contents: contents is not specified\n")
	}
	r.checkTurns(contents)
	r.Turns(contents, "parts")
	if n := fieldOf(config, "candidateCount").Num; n > 1 {
		r.Complain("generation_config.candidate_count", "Multiple candidates is not enabled for this model")
	}
}

// checkTurns complains of flaws in the turns that no form describes, and charges their parts. A turn
// without a role is the user's only if it is alone.
func (r *request) checkTurns(contents gjson.Result) {
	index, turns := 0, contents.Get("#").Num
	contents.ForEach(func(_, turn gjson.Result) bool {
		switch role := turn.Get("role").Str; {
		case role != "user" && role != "model" && role != "function" && (role != "" || turns > 1 && r.vertex):
			r.Complain("contents", "Please use a valid role: user, model.")
		case turn.Get("parts.#").Num == 0:
			r.Complain("contents", fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", index))
		}
		turn.Get("parts").ForEach(func(_, part gjson.Result) bool {
			r.chargePart(part)
			return true
		})
		index++
		return r.Complaint == ""
	})
}

// picture is the charge for a picture or file, in characters: Gemini's 258 tokens.
const picture = 4 * 258

// chargePart charges a part without text: media as a page, calls and results by their length as JSON.
func (r *request) chargePart(part gjson.Result) {
	part.ForEach(func(key, v gjson.Result) bool {
		switch camel(key.Str) {
		case "inlineData", "fileData":
			r.Chars += picture
		case "functionCall", "functionResponse":
			r.Charge(v.Raw)
		}
		return part.IsObject()
	})
}

// complainOf complains of a flaw in the words of Google's parser of JSON, and keeps its details.
func (r *request) complainOf(f face.Flaw) {
	path, name := googlePath(f.Path)
	switch {
	case f.What == face.Unknown:
		text := fmt.Sprintf("Invalid JSON payload received. Unknown name %q", name)
		if path != "" {
			text += fmt.Sprintf(" at '%s'", path)
		}
		r.Complain(path, text+": Cannot find field.")
	case f.What == face.WrongType:
		r.Complain(path, fmt.Sprintf("Invalid value at '%s' (%s), %s", joinPath(path, name), typeWords.Of(f.Form.Is), face.Excerpt(f.Value.Raw)))
	case f.Form.Is == face.Array:
		r.Complain(path, fmt.Sprintf("* GenerateContentRequest.%s: the number of %s must not exceed %g.\n", joinPath(path, name), name, f.Form.Most))
	default:
		r.Complain(path, fmt.Sprintf("* GenerateContentRequest.%s: %s must be in the range [%g, %g].\n", joinPath(path, name), name, f.Form.Least, f.Form.Most))
	}
	r.detail = fmt.Sprintf(`{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":%s,"description":%s}]}`,
		face.Quote(path), face.Quote(r.Complaint))
}

// googlePath returns a path as Google writes it, such as contents[0], and its last name apart.
func googlePath(steps []face.Step) (path, last string) {
	for i, step := range steps {
		switch {
		case step.Name == "":
			path += fmt.Sprintf("[%d]", step.Place)
		case i == len(steps)-1:
			last = step.Name
		default:
			path = joinPath(path, snake(step.Name))
		}
	}
	return path, last
}

// joinPath returns the path of a field below another path, in Google's spelling.
func joinPath(path, name string) string {
	switch {
	case path == "":
		return snake(name)
	case name == "":
		return path
	}
	return path + "." + snake(name)
}

// snake returns a name in the form of Google's complaints.
func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

var typeWords = face.TypeWords{String: "TYPE_STRING", Integer: "TYPE_INT32", Number: "TYPE_FLOAT", Bool: "TYPE_BOOL", Other: "TYPE_MESSAGE"}

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
