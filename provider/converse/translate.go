package converse

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat"
	"github.com/headrace/headrace/provider/cohere"
	"github.com/headrace/headrace/provider/rawjson"
)

// FromChat translates one of OpenAI's chat requests into a Converse body: see package chat for
// the fields that it carries over. The model stands in the URL. An error is a
// *provider.Untranslatable.
func FromChat(r provider.Request, _ provider.Defaults) ([]byte, error) {
	request, err := chat.Read("converse", r.Body)
	if err != nil {
		return nil, err
	}
	if strings.Contains(r.Model, "anthropic.claude") { // other models begin elsewhere: Nova at 0.7 and 0.9
		request.LeaveOutOnes()
	}
	if err := checkSupported(request); err != nil {
		return nil, err
	}
	return build(request, make([]byte, 0, len(r.Body)+256)), nil
}

// checkSupported refuses requests that the dialect cannot express.
func checkSupported(request *chat.Request) error {
	switch temperature, _ := strconv.ParseFloat(string(request.Temperature), 64); {
	case request.Seed != nil:
		return request.Refuse("seed", "has no counterpart")
	case request.User != nil:
		return request.Refuse("user", "has no counterpart")
	case temperature > 1:
		return request.Refuse("temperature", "is above 1, the maximum")
	case request.Choice == chat.ChoiceNone:
		return request.Refuse("tool_choice", "has no counterpart")
	case request.OneCall:
		return request.Refuse("parallel_tool_calls", "has no counterpart")
	case request.Format != nil && !utf8.Valid(request.Format.Schema):
		return request.Refuse("response_format.json_schema.schema", "is not UTF-8")
	}
	if err := checkParts(request); err != nil {
		return err
	}
	for _, check := range []func() error{request.NoEffort, request.NoFreeJSON, request.NeedParameters, request.NoBlankText} {
		if err := check(); err != nil {
			return err
		}
	}
	return request.CheckSchemas(&chat.Structured)
}

// checkParts refuses addresses of the web, and a document in a turn that has no text: Bedrock
// takes no document without a text (API reference, Message).
func checkParts(request *chat.Request) error {
	var document *chat.Part // the first in the turn
	hasText := false
	for i, turn := range request.Turns {
		if i == 0 || request.Turns[i-1].Role != turn.Role {
			document, hasText = nil, false
		}
		for k := range turn.Parts {
			switch p := &turn.Parts[k]; p.Kind {
			case chat.Link:
				return request.RefusePart(p, "image_url.url", "is an address of the web, and the image must be in the body")
			case chat.Document:
				document = cmp.Or(document, p)
			case chat.Text:
				hasText = true
			}
		}
		if last := i == len(request.Turns)-1 || request.Turns[i+1].Role != turn.Role; last && document != nil && !hasText {
			return request.RefusePart(document, "file", "is in a turn without text, which must have some")
		}
	}
	return nil
}

// build appends the Converse body of a request that has passed checkSupported. It leaves
// out members without a value.
func build(request *chat.Request, out []byte) []byte {
	out = append(out, '{')
	if len(request.System) > 0 {
		out = append(chat.AppendName(out, "system"), '[')
		out = append(appendParts(out, request.System), ']')
	}
	out = append(appendTurns(append(chat.AppendName(out, "messages"), '['), request.Turns), ']')
	out = appendConfig(out, request)
	out = appendTools(out, request)
	if request.Format != nil {
		out = append(chat.AppendName(out, "outputConfig"), `{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{`...)
		out = chat.AppendMember(out, "name", request.Format.Name)
		out = chat.AppendMember(out, "description", request.Format.Description)
		out = chat.AppendMember(out, "schema", rawjson.AppendString(nil, string(request.Format.Schema)))
		out = append(out, "}}}}"...)
	}
	return append(out, '}')
}

// appendTurns makes one turn of neighbours with one role: roles must take turns there.
func appendTurns(out []byte, turns []chat.Turn) []byte {
	for i, turn := range turns {
		if i == 0 || turns[i-1].Role != turn.Role {
			role := `{"role":"user","content":[`
			if turn.Role == chat.Assistant {
				role = `{"role":"assistant","content":[`
			}
			out = append(chat.AppendComma(out), role...)
		}
		out = appendParts(out, turn.Parts)
		if i == len(turns)-1 || turns[i+1].Role != turn.Role {
			out = append(out, "]}"...)
		}
	}
	return out
}

// appendConfig appends inferenceConfig, or nothing if it would be empty.
func appendConfig(out []byte, request *chat.Request) []byte {
	before := len(out)
	out = append(chat.AppendName(out, "inferenceConfig"), '{')
	empty := len(out)
	if request.MaxTokens > 0 {
		out = strconv.AppendInt(chat.AppendName(out, "maxTokens"), int64(request.MaxTokens), 10)
	}
	out = chat.AppendMember(out, "temperature", request.Temperature)
	out = chat.AppendMember(out, "topP", request.TopP)
	if len(request.Stop) > 0 {
		out = chat.AppendStrings(chat.AppendName(out, "stopSequences"), request.Stop)
	}
	if len(out) == empty {
		return out[:before]
	}
	return append(out, '}')
}

func appendParts(out []byte, parts []chat.Part) []byte {
	for i := range parts {
		out = append(appendPart(append(chat.AppendComma(out), '{'), &parts[i]), '}')
	}
	return out
}

// appendPart appends the one member of a block of content. A result is always a list of blocks
// there, also if it came as one text.
func appendPart(out []byte, p *chat.Part) []byte {
	switch p.Kind {
	case chat.Image:
		out = append(out, `"image":{"format":"`...)
		out = append(append(out, p.Media.String()...), `","source":{"bytes":"`...)
		return append(append(out, p.Text...), `"}}`...)
	case chat.Document:
		// The name is demanded, must differ from all others, and may not have the dot of a file's;
		// AWS recommends a neutral one, since the model might take it for an instruction.
		message, index := p.Place()
		out = fmt.Appendf(out, `"document":{"format":"pdf","name":"document-%d-%d","source":{"bytes":"`, message, index)
		return append(append(out, p.Text...), `"}}`...)
	case chat.Call:
		out = chat.AppendMember(append(out, `"toolUse":{`...), "toolUseId", p.Tool.ID)
		out = chat.AppendMember(out, "name", p.Tool.Name)
		return append(chat.AppendMember(out, "input", p.Text), '}')
	case chat.Result:
		out = chat.AppendMember(append(out, `"toolResult":{`...), "toolUseId", p.Tool.ID)
		parts := p.Tool.Parts
		if parts == nil {
			parts = []chat.Part{{Text: p.Text}}
		}
		return append(appendParts(append(chat.AppendName(out, "content"), '['), parts), "]}"...)
	}
	return chat.AppendMember(out, "text", p.Text)
}

// appendTools appends toolConfig, if there are any tools. The default choice, in which the model
// decides, is left out.
func appendTools(out []byte, request *chat.Request) []byte {
	if len(request.Tools) == 0 {
		return out
	}
	out = append(chat.AppendName(out, "toolConfig"), `{"tools":[`...)
	for _, tool := range request.Tools {
		out = append(chat.AppendComma(out), `{"toolSpec":{`...)
		out = chat.AppendMember(out, "name", tool.Name)
		out = chat.AppendMember(out, "description", tool.Description)
		out = append(out, `,"inputSchema":{`...)
		out = append(chat.AppendMember(out, "json", tool.Parameters), '}')
		if tool.Strict {
			out = append(out, `,"strict":true`...)
		}
		out = append(out, "}}"...)
	}
	out = append(out, ']')
	switch request.Choice {
	case chat.ChoiceAny:
		out = append(out, `,"toolChoice":{"any":{}}`...)
	case chat.ChoiceNamed:
		out = append(out, `,"toolChoice":{"tool":{`...)
		out = append(chat.AppendMember(out, "name", request.ChoiceName), "}}"...)
	}
	return append(out, '}')
}

// Models that embed, by a part of their ids: prefixes of regions, versions and ARNs are around it.
const (
	titan2      = "amazon.titan-embed-text-v2"
	cohere4     = "cohere.embed-v4"
	cohere3     = "cohere.embed-english-v3"
	cohere3Many = "cohere.embed-multilingual-v3"
)

// FromEmbeddings translates a request for OpenAI's embeddings into a body of InvokeModel, which
// differs by the maker of the model. An error is a *provider.Untranslatable.
func (Dialect) FromEmbeddings(r provider.Request) (operation string, body []byte, err error) {
	e, err := chat.ReadEmbeddings(name, r.Body)
	if err != nil {
		return "", nil, err
	}
	out := append(make([]byte, 0, len(r.Body)+128), '{')
	switch {
	case strings.Contains(r.Model, titan2):
		body, err = appendTitan(out, e)
	case strings.Contains(r.Model, cohere4):
		body, err = cohere.AppendEmbed(out, e)
	case strings.Contains(r.Model, cohere3), strings.Contains(r.Model, cohere3Many):
		if e.Dimensions > 0 {
			return "", nil, e.Refuse("dimensions", "has no counterpart with this model")
		}
		body, err = cohere.AppendEmbed(out, e)
	default:
		err = e.Refuse("model", "is not one of "+strings.Join([]string{titan2, cohere4, cohere3, cohere3Many}, ", "))
	}
	return provider.Invoke, body, err
}

// appendTitan writes a body for Titan: one text. Its vectors are of length one, as OpenAI's are.
func appendTitan(out []byte, e *chat.Embeddings) ([]byte, error) {
	if e.InputType != nil {
		return nil, e.Refuse("input_type", "has no counterpart")
	}
	if err := e.AtMost(1); err != nil {
		return nil, err
	}
	out = chat.AppendMember(out, "inputText", e.Inputs[0])
	if e.Dimensions > 0 {
		out = strconv.AppendInt(chat.AppendName(out, "dimensions"), int64(e.Dimensions), 10)
	}
	return append(out, '}'), nil
}

// inputCount is the header in which InvokeModel reports the number of tokens that a model has read.
const inputCount = "X-Amzn-Bedrock-Input-Token-Count"

// readCount returns the usage of an answer of InvokeModel without one in its body, as for
// embeddings. The count is in a header, and Titan also puts it next to its vector.
func readCount(h http.Header, body []byte) (u provider.Usage, known bool) {
	count := []byte(h.Get(inputCount))
	if len(count) == 0 {
		count = rawjson.Lookup(rawjson.Trim(body), "inputTextTokenCount")
	}
	n, err := strconv.ParseInt(string(count), 10, 32)
	if err != nil || n < 0 {
		return u, false
	}
	return provider.Usage{InputTokens: n}, true
}
