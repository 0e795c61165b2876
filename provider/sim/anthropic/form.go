package anthropic

import (
	"maps"

	"github.com/headrace/headrace/provider/sim/face"
)

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
	older  = whole([]string{"model", "max_tokens", "messages"}, base, sampling, fields("model", text))
	newer  = whole([]string{"model", "max_tokens", "messages"}, base, fields("model", text))
	atGCP  = face.Form{Is: face.String, Words: []string{vertexVersion}}
	google = whole([]string{"anthropic_version", "max_tokens", "messages"}, base, sampling, fields("anthropic_version", atGCP))
)

func form(door, version string) face.Form {
	switch {
	case door == vertex:
		return google
	case version == noSampling:
		return newer
	}
	return older
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
