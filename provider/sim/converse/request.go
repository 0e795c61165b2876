package converse

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// request is a call of Converse, or of InvokeModel.
type request struct {
	face.Prompt
	operation  string
	key        string
	signed     bool   // it is an access key's, with a signature
	unsigned   string // not empty: why no key counts
	unreadable bool   // the complaint is about JSON and its types, not about values
}

// defaultMax bounds the output of a call that names no bound, in tokens: that of many of
// Bedrock's models.
const defaultMax = 4096

// read reads a body; it returns for any body.
func (r *request) read(body string) {
	root := gjson.Parse(body)
	if !gjson.Valid(body) || !root.IsObject() {
		r.unreadable = true
		r.Complain("", "Unable to parse the request body as a JSON object")
		return
	}
	if r.operation == invoke {
		r.readInvoke(root)
		return
	}
	if flaw, flawed := whole.Check(root); flawed {
		r.complainOf(flaw)
	}
	r.MaxTokens = max(0, root.Get("inferenceConfig.maxTokens").Num)
	r.Charge(face.TextOf(root.Get("system")))
	if tools := root.Get("toolConfig"); tools.IsObject() {
		r.Charge(tools.Raw)
	}
	messages := root.Get("messages")
	r.checkTurns(messages)
	r.Turns(messages, "content")
}

// checkTurns complains, in Bedrock's words, of flaws in the turns that no form describes.
func (r *request) checkTurns(messages gjson.Result) {
	index, last := 0, ""
	messages.ForEach(func(_, turn gjson.Result) bool {
		role := turn.Get("role").Str
		switch {
		case index == 0 && role == "assistant":
			r.Complain("messages", "A conversation must start with a user message. Try again with a conversation that starts with a user message.")
		case role == last:
			r.Complain("messages", "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		case turn.Get("content.#").Num == 0:
			r.Complain("messages", fmt.Sprintf("The content field in the Message object at messages.%d is empty. Add a ContentBlock object to the content field and try again.", index))
		}
		r.checkBlocks(index, turn.Get("content"))
		index, last = index+1, role
		return r.Complaint == ""
	})
	if index == 0 {
		r.Complain("messages", "A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
}

// checkBlocks finds the first flaw in the blocks of a turn, and charges the blocks without text.
// Texts are charged elsewhere, by Turns.
func (r *request) checkBlocks(turn int, content gjson.Result) {
	index := 0
	content.ForEach(func(_, block gjson.Result) bool {
		// at is the path of the block, as Bedrock prints it.
		path := fmt.Sprintf("messages.%d.content.%d", turn, index)
		text := block.Get("text")
		switch {
		case memberCount(block) != 1:
			r.Complain(path, fmt.Sprintf("The ContentBlock object at %s must set exactly one of the following keys: text, image, toolUse, toolResult, document, video, cachePoint, reasoningContent.", path))
		case text.Exists() && strings.TrimSpace(text.Str) == "":
			r.Complain(path, fmt.Sprintf("The text field in the ContentBlock object at %s is blank. Add text to the text field, and try again.", path))
		case !text.Exists():
			r.chargeBlock(block)
		}
		index++
		return r.Complaint == ""
	})
}

// memberCount returns the number of members that are not null.
func memberCount(block gjson.Result) (n int) {
	block.ForEach(func(_, v gjson.Result) bool {
		if v.Type != gjson.Null {
			n++
		}
		return true
	})
	return n
}

// picture is the charge for a picture or document, in characters: some 1,000 tokens.
const picture = 4000

// chargeBlock charges the blocks that are not text: tools by their length as JSON, and any block
// with a source as a page.
func (r *request) chargeBlock(block gjson.Result) {
	block.ForEach(func(_, member gjson.Result) bool {
		if member.Get("source").Exists() {
			r.Chars += picture
		} else {
			r.Charge(member.Raw)
		}
		return true
	})
}

// complainOf complains of a flaw in the words of AWS's validation.
func (r *request) complainOf(flaw face.Flaw) {
	path := awsPath(flaw.Path)
	prefix := fmt.Sprintf("1 validation error detected: Value %s at '%s' failed to satisfy constraint: ", excerpt(flaw.Value), path)
	switch flaw.What {
	case face.Unknown:
		r.Complain(path, fmt.Sprintf("Malformed input request: #: extraneous key [%s] is not permitted, please reformat your input and try again.", path))
	case face.WrongType:
		r.unreadable = true
		r.Complain(path, fmt.Sprintf("%s can not be converted to %s", jsonType(flaw.Value), typeWords.Of(flaw.Form.Is)))
	case face.Missing:
		r.Complain(path, prefix+"Member must not be null")
	case face.WrongWord:
		r.Complain(path, prefix+"Member must satisfy enum value set: ["+strings.Join(flaw.Form.Words, ", ")+"]")
	case face.TooSmall:
		r.Complain(path, prefix+fmt.Sprintf("Member must have value greater than or equal to %g", flaw.Form.Least))
	default:
		r.Complain(path, prefix+fmt.Sprintf("Member must have value less than or equal to %g", flaw.Form.Most))
	}
}

// awsPath returns a path in AWS's form, in which the first element of a list is 1.member.
func awsPath(steps []face.Step) string {
	words := make([]string, len(steps))
	for i, step := range steps {
		words[i] = step.Name
		if step.Name == "" {
			words[i] = strconv.Itoa(step.Place+1) + ".member"
		}
	}
	return strings.Join(words, ".")
}

func excerpt(v gjson.Result) string {
	if !v.Exists() {
		return "null"
	}
	return "'" + face.Excerpt(v.String()) + "'"
}

// jsonType returns the name that AWS's parser has for the token with which a value begins.
func jsonType(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "START_OBJECT"
	case v.IsArray():
		return "START_ARRAY"
	case v.Type == gjson.String:
		return "STRING_VALUE"
	case v.IsBool():
		return strings.ToUpper(v.String()) + "_VALUE"
	}
	return "NUMBER_VALUE"
}

var typeWords = face.TypeWords{String: "a String", Integer: "an Integer", Number: "a Float", Array: "a List", Other: "a Structure"}

// maxTexts is the largest number of texts that Cohere's models take at once.
const maxTexts = 96

// uses are the purposes for which Cohere's models embed a text.
var uses = []string{"search_document", "search_query", "classification", "clustering"}

// readInvoke reads a body of InvokeModel for models that embed: one text for Titan, and a list
// for all others.
func (r *request) readInvoke(root gjson.Result) {
	texts := root.Get("texts")
	switch text := root.Get("inputText"); {
	case r.isTitan() && text.Type != gjson.String:
		r.Complain("", "Malformed input request: #: required key [inputText] not found, please reformat your input and try again.")
	case r.isTitan():
		r.Add(text.Str)
	case !slices.Contains(uses, root.Get("input_type").Str):
		r.Complain("", "Malformed input request: #: required key [input_type] not found, please reformat your input and try again.")
	case !texts.IsArray() || texts.Get("#").Num < 1 || texts.Get("#").Num > maxTexts:
		r.Complain("", fmt.Sprintf("Malformed input request: #/texts: expected 1 to %d texts, please reformat your input and try again.", maxTexts))
	}
	texts.ForEach(func(_, text gjson.Result) bool {
		if !r.isTitan() {
			r.Add(text.String())
		}
		return texts.IsArray()
	})
}

func (r *request) isTitan() bool { return strings.Contains(r.Model, "titan") }

// vectors returns an answer of InvokeModel. A header holds the number of tokens read.
func (r *request) vectors(s face.Stamp) face.Reply {
	var body []byte
	if r.isTitan() {
		vector := face.AppendVector(nil, r.First())
		body = fmt.Appendf(nil, `{"embedding":%s,"embeddingsByType":{"float":%[1]s},"inputTextTokenCount":%d}`, vector, r.Read())
	} else {
		body = fmt.Appendf(nil, `{"id":"%s","embeddings":{"float":[`, s.ID)
		body = face.Each(body, r.Texts, func(body []byte, _ int, text string) []byte { return face.AppendVector(body, text) })
		body = append(body, `]},"response_type":"embeddings_by_type"}`...)
	}
	reply := face.JSON(http.StatusOK, body)
	reply.Header["X-Amzn-Bedrock-Input-Token-Count"] = []string{strconv.Itoa(r.Read())}
	return reply
}

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
