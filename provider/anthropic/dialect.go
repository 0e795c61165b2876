package anthropic

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat"
	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// name begins every error of this package.
const name = "anthropic"

// The header that Anthropic demands besides a key, and the version in it: one that takes the
// bodies of all prompt files. From 2026-10-21 on, temperature and its like are
// refused even at their defaults.
const (
	VersionHeader  = "Anthropic-Version"
	DefaultVersion = "2023-06-01"
)

// Dialect is Anthropic's: messages.
type Dialect struct{}

// Name is "anthropic".
func (Dialect) Name() string { return name }

// Root is "": the version stands in the path, and base URLs have none.
func (Dialect) Root() string { return "" }

// Header returns the headers of every request, unless another version is asked for.
func (Dialect) Header() http.Header { return http.Header{VersionHeader: {DefaultVersion}} }

// Path returns the path of messages. The model stands in the body.
func (Dialect) Path(operation, _ string) (string, bool) {
	if operation != provider.Messages {
		return "", false
	}
	return provider.Messages, true
}

// Body returns the request's own body. It refuses one that asks for a stream.
func (Dialect) Body(r provider.Request) ([]byte, error) {
	if err := stream.WholeOnly(r.Body, "stream"); err != nil {
		return nil, err
	}
	return r.Body, nil
}

// words are Anthropic's own words, beyond those that all providers share.
var words = provider.Wording{
	Phrases: []provider.Phrase{
		{Says: "organization has been disabled", Kind: provider.Unauthorized}, // as a 400
	},
}

// Answer reads an answer as provider.ReplyOf does, with both caches as parts of the input: Anthropic
// counts them separately. A gateway's errors may be in anybody's form.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	return provider.ReplyIn(status, h, body, w, &words)
}

// FromChat translates one of OpenAI's chat requests into the dialect: see the function FromChat.
func (Dialect) FromChat(r provider.Request, d provider.Defaults) ([]byte, error) {
	return FromChat(r, d)
}

// Text returns the blocks of text, one after another, without blocks of thinking and calls of
// tools.
func (Dialect) Text(body []byte) (string, bool) {
	var text []byte
	for w := rawjson.WalkIn(rawjson.Lookup(rawjson.Trim(body), "content")); w.Next(); {
		if block := w.Skip(); rawjson.IsWord(rawjson.Lookup(block, "type"), "text") {
			text = rawjson.AppendText(text, rawjson.Lookup(block, "text"))
		}
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), len(text) > 0
}

// FromChat translates one of OpenAI's chat requests into a Messages body: see package chat for
// the fields that it carries over. The model is r.Model, or the body's own if that is empty. An
// error is a *provider.Untranslatable.
func FromChat(r provider.Request, d provider.Defaults) ([]byte, error) {
	request, err := chat.Read("anthropic", r.Body)
	if err != nil {
		return nil, err
	}
	request.LeaveOutOnes()
	model := request.Model
	if r.Model != "" {
		model = rawjson.AppendString(nil, r.Model)
	}
	maxTokens := request.MaxTokens
	if maxTokens == 0 {
		maxTokens = d.MaxTokens
	}
	if err := checkSupported(request, model, maxTokens); err != nil {
		return nil, err
	}
	return build(request, model, maxTokens, make([]byte, 0, len(r.Body)+256)), nil
}

// checkSupported refuses requests that the dialect cannot express.
func checkSupported(request *chat.Request, model []byte, maxTokens int) error {
	switch {
	case model == nil:
		return request.Refuse("model", "is missing")
	case maxTokens <= 0:
		return request.Refuse("max_completion_tokens", "is missing, and a bound is demanded")
	case request.Seed != nil:
		return request.Refuse("seed", "has no counterpart")
	case above1(request.Temperature):
		return request.Refuse("temperature", "is above 1, the maximum")
	case request.Format != nil && request.Format.Description != nil:
		return request.Refuse("response_format.json_schema.description", "has no counterpart")
	}
	for _, check := range []func() error{request.NoEffort, request.NoFreeJSON, request.NoBlankStop, request.NeedParameters, request.NoBlankText} {
		if err := check(); err != nil {
			return err
		}
	}
	return request.CheckSchemas(&chat.Structured)
}

func above1(number []byte) bool {
	n, err := strconv.ParseFloat(string(number), 64)
	return err == nil && n > 1
}

// build appends the Messages body of a request that has passed checkSupported. It leaves
// out members without a value.
func build(request *chat.Request, model []byte, maxTokens int, out []byte) []byte {
	out = chat.AppendMember(append(out, '{'), "model", model)
	out = chat.AppendMember(out, "max_tokens", strconv.AppendInt(nil, int64(maxTokens), 10))
	if len(request.System) > 0 {
		out = appendParts(chat.AppendName(out, "system"), request.System)
	}
	out = append(chat.AppendName(out, "messages"), '[')
	for _, turn := range request.Turns {
		role := `{"role":"user","content":`
		if turn.Role == chat.Assistant {
			role = `{"role":"assistant","content":`
		}
		out = append(chat.AppendComma(out), role...)
		out = append(appendParts(out, turn.Parts), '}')
	}
	out = append(out, ']')
	out = chat.AppendMember(out, "temperature", request.Temperature)
	out = chat.AppendMember(out, "top_p", request.TopP)
	if len(request.Stop) > 0 {
		out = chat.AppendStrings(chat.AppendName(out, "stop_sequences"), request.Stop)
	}
	if request.User != nil {
		out = append(chat.AppendMember(append(chat.AppendName(out, "metadata"), '{'), "user_id", request.User), '}')
	}
	if request.Format != nil {
		out = append(chat.AppendName(out, "output_config"), `{"format":{"type":"json_schema"`...)
		out = append(chat.AppendMember(out, "schema", request.Format.Schema), "}}"...)
	}
	return append(appendTools(out, request), '}')
}

func appendParts(out []byte, parts []chat.Part) []byte {
	out = append(out, '[')
	for i := range parts {
		out = appendPart(chat.AppendComma(out), &parts[i])
	}
	return append(out, ']')
}

// appendPart appends a part as one block of content. The content of a result is its text, or the
// parts in which it came.
func appendPart(out []byte, p *chat.Part) []byte {
	switch p.Kind {
	case chat.Image:
		out = append(out, `{"type":"image","source":{"type":"base64","media_type":"image/`...)
		out = append(append(out, p.Media.String()...), `","data":"`...)
		return append(append(out, p.Text...), `"}}`...)
	case chat.Link:
		out = chat.AppendMember(append(out, `{"type":"image","source":{"type":"url"`...), "url", p.Text)
		out = append(out, '}')
	case chat.Document:
		out = append(out, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"`...)
		out = append(append(out, p.Text...), `"}`...)
		out = chat.AppendMember(out, "title", p.Name)
	case chat.Call:
		out = chat.AppendMember(append(out, `{"type":"tool_use"`...), "id", p.Tool.ID)
		out = chat.AppendMember(out, "name", p.Tool.Name)
		out = chat.AppendMember(out, "input", p.Text)
	case chat.Result:
		out = chat.AppendMember(append(out, `{"type":"tool_result"`...), "tool_use_id", p.Tool.ID)
		out = chat.AppendMember(out, "content", p.Text)
		if p.Tool.Parts != nil {
			out = appendParts(chat.AppendName(out, "content"), p.Tool.Parts)
		}
	default:
		out = chat.AppendMember(append(out, `{"type":"text"`...), "text", p.Text)
	}
	return append(out, '}')
}

// appendTools appends the tools and the choice among them, if there are any tools.
func appendTools(out []byte, request *chat.Request) []byte {
	if len(request.Tools) == 0 {
		return out
	}
	out = append(chat.AppendName(out, "tools"), '[')
	for _, tool := range request.Tools {
		out = append(chat.AppendComma(out), '{')
		out = chat.AppendMember(out, "name", tool.Name)
		out = chat.AppendMember(out, "description", tool.Description)
		out = chat.AppendMember(out, "input_schema", tool.Parameters)
		if tool.Strict {
			out = append(out, `,"strict":true`...)
		}
		out = append(out, '}')
	}
	return appendChoice(append(out, ']'), request)
}

// appendChoice appends tool_choice. It leaves out Anthropic's default: the model decides, and may
// call several tools at a time.
func appendChoice(out []byte, request *chat.Request) []byte {
	kind := [...]string{chat.ChoiceAuto: "auto", chat.ChoiceNone: "none", chat.ChoiceAny: "any", chat.ChoiceNamed: "tool"}[request.Choice]
	if request.Choice == chat.ChoiceAuto && !request.OneCall {
		return out
	}
	out = append(chat.AppendName(out, "tool_choice"), `{"type":"`...)
	out = append(append(out, kind...), '"')
	if request.Choice == chat.ChoiceNamed {
		out = chat.AppendMember(out, "name", request.ChoiceName)
	}
	if request.OneCall && request.Choice != chat.ChoiceNone { // with none there is no call at all
		out = append(out, `,"disable_parallel_tool_use":true`...)
	}
	return append(out, '}')
}
