package anthropic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// request is a call of the Messages API.
type request struct {
	face.Prompt
	door       string
	key        string
	thinks     bool // it asks for the model's thoughts
	stream     bool // the answer is to come as a stream
	cacheChars int  // of the input, up to the last mark of a cache
	oversize   bool
}

// maxBody is Anthropic's bound on a request.
const maxBody = 32 << 20

// The versions of the API. The last refuses the fields for sampling.
const (
	noSampling    = "2026-10-21"
	vertexVersion = "vertex-2023-10-16"
)

var versions = []string{"2023-01-01", "2023-06-01", noSampling}

// read reads a body; it returns for any body.
func (r *request) read(version, body string) {
	if len(body) > maxBody {
		r.oversize = true
		r.Complain("", tooLargeMessage)
	}
	if r.door != vertexDoor {
		r.checkVersion(version)
	}
	if !gjson.Valid(body) {
		r.Complain("", "The request body is not valid JSON.")
		return
	}
	root := gjson.Parse(body)
	if flaw, flawed := formFor(r.door, version).Check(root); flawed {
		r.Complain(complaintOf(flaw))
	}
	if !root.IsObject() {
		return
	}
	r.readFields(root)
	r.checkTurns(root.Get("messages"))
}

func (r *request) checkVersion(version string) {
	switch {
	case version == "":
		r.Complain("anthropic-version", "anthropic-version: header is required")
	case !slices.Contains(versions, version):
		r.Complain("anthropic-version", fmt.Sprintf("anthropic-version: %q is not a valid version", version))
	}
}

// readFields reads the fields that the answer depends on, and charges the prompt.
func (r *request) readFields(root gjson.Result) {
	if r.door != vertexDoor {
		r.Model = root.Get("model").String()
	}
	r.MaxTokens = max(0, root.Get("max_tokens").Num)
	r.thinks = slices.Contains([]string{"enabled", "adaptive"}, root.Get("thinking.type").Str)
	r.chargeBlocks(root.Get("tools"))
	r.Charge(face.TextOf(root.Get("system")))
	r.chargeBlocks(root.Get("system"))
	r.Turns(root.Get("messages"), "content")
	root.Get("messages").ForEach(func(_, turn gjson.Result) bool {
		r.chargeBlocks(turn.Get("content"))
		return true
	})
	r.stream = root.Get("stream").Bool()
	r.cacheChars = cacheChars(root)
}

// chargeBlocks charges blocks that are not text: tools, their use and results.
func (r *request) chargeBlocks(blocks gjson.Result) {
	blocks.ForEach(func(_, block gjson.Result) bool {
		content := block.Get("content")
		switch {
		case !block.IsObject(), block.Get("type").Str == "text":
		case content.IsArray(): // the result of a tool, which may be a picture
			content.ForEach(func(_, inner gjson.Result) bool {
				r.chargeBlock(inner)
				return true
			})
		default:
			r.chargeBlock(block)
		}
		return true
	})
}

// chargeBlock charges a block by its length as JSON. A picture or document counts as a page of text, whatever its bytes.
func (r *request) chargeBlock(block gjson.Result) {
	if block.Get("source").Exists() {
		r.Chars += pageChars
	} else {
		r.Charge(block.Raw)
	}
}

// pageChars is the charge for a picture or document, in characters: 1,000 tokens, near to
// the result of Anthropic's rule for a picture of 1000 × 750.
const pageChars = 4000

// cacheChars counts the characters up to the last text that is marked for the cache, in the
// order in which Anthropic reads them: system, then messages.
func cacheChars(root gjson.Result) (marked int) {
	chars := 0
	count := func(content gjson.Result) {
		if !content.IsArray() {
			chars += utf8.RuneCountInString(content.String())
			return
		}
		content.ForEach(func(_, block gjson.Result) bool {
			chars += utf8.RuneCountInString(block.Get("text").String())
			if block.Get("cache_control").IsObject() {
				marked = chars
			}
			return true
		})
	}
	count(root.Get("system"))
	root.Get("messages").ForEach(func(_, turn gjson.Result) bool {
		count(turn.Get("content"))
		return true
	})
	return marked
}

// checkTurns complains of flaws in the turns that no form describes.
func (r *request) checkTurns(turns gjson.Result) {
	index, last := 0, int(turns.Get("#").Num)-1
	turns.ForEach(func(_, turn gjson.Result) bool {
		content := turn.Get("content")
		switch {
		case index == 0 && turn.Get("role").Str == "assistant":
			r.Complain("messages", `messages: first message must use the "user" role`)
		case content.Type == gjson.String && content.Str == "", content.IsArray() && content.Get("#").Num == 0:
			if index < last || turn.Get("role").Str == "user" {
				r.Complain("messages", fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", index))
			}
		case content.IsArray() && hasEmptyText(content):
			r.Complain("messages", "messages: text content blocks must be non-empty")
		}
		index++
		return r.Complaint == ""
	})
}

func hasEmptyText(content gjson.Result) (empty bool) {
	content.ForEach(func(_, block gjson.Result) bool {
		empty = block.Get("type").Str == "text" && block.Get("text").Str == ""
		return !empty
	})
	return empty
}

// complaintOf returns the path of a flaw, and the message in the words of Anthropic's validation.
func complaintOf(f face.Flaw) (path, message string) {
	steps := make([]string, len(f.Path))
	for i, step := range f.Path {
		steps[i] = step.Name
		if step.Name == "" {
			steps[i] = strconv.Itoa(step.Place)
		}
	}
	path = strings.Join(steps, ".")
	why := "Input should be a valid " + typeWords.Of(f.Form.Is)
	switch f.What {
	case face.Unknown:
		why = "Extra inputs are not permitted"
	case face.Missing:
		why = "Field required"
	case face.WrongWord:
		why = "Input should be '" + strings.Join(f.Form.Words, "', '") + "'"
	case face.TooSmall:
		why = fmt.Sprintf("Input should be greater than or equal to %g", f.Form.Least)
		if f.Form.Is == face.Array {
			why = fmt.Sprintf("List should have at least %g item", f.Form.Least)
		}
	case face.TooGreat:
		why = fmt.Sprintf("Input should be less than or equal to %g", f.Form.Most)
	}
	if path == "" {
		return "", why
	}
	return path, path + ": " + why
}

var typeWords = face.TypeWords{String: "string", Integer: "integer", Number: "number", Bool: "boolean", Array: "list", Other: "dictionary"}

var (
	text    = face.Form{Is: face.String}
	flag    = face.Form{Is: face.Bool}
	object  = face.Form{Is: face.Object}
	list    = face.Form{Is: face.Array}
	share   = face.Form{Is: face.Number, Least: 0, Most: 1}
	integer = face.Form{Is: face.Integer}
	atLeast = face.Form{Is: face.Integer, Least: 1}
)

// block is a part of a content. The fields of each kind of block are not checked: there are
// new ones every month.
var block = face.Form{
	Is: face.Object, Need: []string{"type"},
	Fields: fields("type", face.Form{Is: face.String, Words: []string{
		"text", "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result",
		"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
		"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
		"mcp_tool_use", "mcp_tool_result", "container_upload", "compaction",
	}},
		"text", text, "source", face.Form{}, "cache_control", object, "citations", face.Form{}, "title", text, "context", text,
		"content", face.Form{}, "thinking", text, "signature", text, "data", text, "id", text, "name", text, "input", face.Form{},
		"tool_use_id", text, "is_error", flag, "server_name", text, "file_id", text, "caller", object, "encrypted_content", text),
}

var content = face.Form{Is: face.String | face.Array, Items: &block}

var turn = face.Form{
	Is: face.Object, Need: []string{"role", "content"},
	Fields: fields("role", face.Form{Is: face.String, Words: []string{"user", "assistant"}}, "content", content),
}

// base holds the fields that a request may have at every door and in every version.
var base = fields(
	"max_tokens", atLeast,
	"messages", face.Form{Is: face.Array, Items: &turn, Least: 1},
	"system", content,
	"metadata", face.Form{Is: face.Object, Fields: fields("user_id", text)},
	"stop_sequences", face.Form{Is: face.Array, Items: &text},
	"stream", flag,
	"tools", list, "tool_choice", object, "thinking", object,
	"service_tier", face.Form{Is: face.String, Words: []string{"auto", "standard_only"}},
	"container", face.Form{}, "context_management", object, "mcp_servers", list,
	"output_config", object, "output_format", object, "inference_geo", text, "cache_control", object, "speed", text,
)

var sampling = fields("temperature", share, "top_p", share, "top_k", integer)

// The forms of a whole request.
var (
	oldForm    = whole([]string{"model", "max_tokens", "messages"}, base, sampling, fields("model", text))
	newForm    = whole([]string{"model", "max_tokens", "messages"}, base, fields("model", text))
	atGCP      = face.Form{Is: face.String, Words: []string{vertexVersion}}
	vertexForm = whole([]string{"anthropic_version", "max_tokens", "messages"}, base, sampling, fields("anthropic_version", atGCP))
)

// formFor returns the form of bodies at a door, by the version of the API.
func formFor(door, version string) face.Form {
	switch {
	case door == vertexDoor:
		return vertexForm
	case version == noSampling:
		return newForm
	}
	return oldForm
}

func whole(need []string, parts ...map[string]face.Form) face.Form {
	all := map[string]face.Form{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return face.Form{Is: face.Object, Need: need, Fields: all}
}

// fields takes names and their forms in turn.
func fields(pairs ...any) map[string]face.Form {
	m := make(map[string]face.Form, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1].(face.Form)
	}
	return m
}
