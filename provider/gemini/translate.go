package gemini

import (
	"strconv"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat"
	"github.com/headrace/headrace/provider/rawjson"
)

// schemaWords are those keywords under responseJsonSchema in the reference to which Gemini
// holds an answer, as OpenAI's strict outputs do. Gemini ignores keywords outside the reference
// silently. oneOf means anyOf there, and a recursive $ref is followed for a while only.
var schemaWords = chat.Keywords{
	Known: []string{
		"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum",
		"title", "description", "format", "minimum", "maximum", "minItems", "maxItems",
	},
	Formats: []string{"date-time", "time", "date"},
	Enum:    `"0`,
}

// maxStops is the largest number of strings that may stop an answer.
const maxStops = 5

// FromChat translates one of OpenAI's chat requests into a generateContent body: see package chat
// for the fields that it carries over. The model stands in the URL. An error is a
// *provider.Untranslatable.
func FromChat(r provider.Request, _ provider.Defaults) ([]byte, error) {
	request, err := chat.Read("gemini", r.Body)
	if err != nil {
		return nil, err
	}
	if err := checkSupported(request); err != nil {
		return nil, err
	}
	thinkingMember := thinking(r.Model, request.Effort)
	if request.Effort != "" && thinkingMember == "" {
		return nil, request.Refuse("reasoning_effort", "is "+strconv.QuoteToASCII(request.Effort)+", which has no documented counterpart for the model "+strconv.Quote(r.Model))
	}
	w := &writer{Request: request, thinking: thinkingMember, wantsSignature: wantsSignature(r.Model)}
	return w.build(make([]byte, 0, len(r.Body)+256)), nil
}

// checkSupported refuses requests that the dialect cannot express.
func checkSupported(request *chat.Request) error {
	switch {
	case request.User != nil:
		return request.Refuse("user", "has no counterpart")
	case len(request.Stop) > maxStops:
		return request.Refuse("stop", "has more than "+strconv.Itoa(maxStops)+" strings")
	case request.Format != nil && request.Format.Description != nil:
		return request.Refuse("response_format.json_schema.description", "has no counterpart")
	}
	if request.Seed != nil {
		if _, err := strconv.ParseInt(string(request.Seed), 10, 32); err != nil {
			return request.Refuse("seed", "is beyond 32 bits")
		}
	}
	for _, turn := range request.Turns {
		for i := range turn.Parts {
			if err := checkPart(request, &turn.Parts[i]); err != nil {
				return err
			}
		}
	}
	if err := checkTools(request); err != nil {
		return err
	}
	return request.CheckSchemas(&schemaWords)
}

// checkPart refuses a part that Gemini cannot express.
func checkPart(request *chat.Request, p *chat.Part) error {
	switch {
	case p.Kind == chat.Result && len(p.Tool.Parts) > 1:
		return request.RefusePart(p, "", "has several parts, and there is a place for one text")
	case p.Kind == chat.Link:
		return request.RefusePart(p, "image_url.url", "is an address of the web, and the image must be in the body")
	case p.Media == chat.GIF:
		return request.RefusePart(p, "image_url.url", "is a gif, which is not taken")
	}
	return nil
}

// A writer writes the contents of a chat that has passed checkSupported.
type writer struct {
	*chat.Request
	thinking       string // a member of thinkingConfig; "" is none
	wantsSignature bool   // the model wants a signature with the first call of a turn
}

// build appends the generateContent body. generationConfig is left out if it would be empty.
func (w *writer) build(out []byte) []byte {
	out = append(out, '{')
	if len(w.System) > 0 {
		out = append(chat.AppendName(out, "systemInstruction"), '{')
		out = append(w.appendParts(out, w.System), '}')
	}
	out = append(chat.AppendName(out, "contents"), '[')
	for _, turn := range w.Turns {
		role := `{"role":"user"`
		if turn.Role == chat.Assistant {
			role = `{"role":"model"`
		}
		out = append(chat.AppendComma(out), role...)
		out = append(w.appendParts(out, turn.Parts), '}')
	}
	out = w.appendTools(append(out, ']'))
	before := len(out)
	out = append(chat.AppendName(out, "generationConfig"), '{')
	empty := len(out)
	if out = w.appendConfig(out); len(out) == empty {
		return append(out[:before], '}')
	}
	return append(out, "}}"...)
}

// appendConfig appends the members of generationConfig for which the request has a value.
func (w *writer) appendConfig(out []byte) []byte {
	if w.MaxTokens > 0 {
		out = strconv.AppendInt(chat.AppendName(out, "maxOutputTokens"), int64(w.MaxTokens), 10)
	}
	out = chat.AppendMember(out, "temperature", w.Temperature)
	out = chat.AppendMember(out, "topP", w.TopP)
	out = chat.AppendMember(out, "seed", w.Seed)
	if len(w.Stop) > 0 {
		out = chat.AppendStrings(chat.AppendName(out, "stopSequences"), w.Stop)
	}
	if w.Format != nil {
		out = append(chat.AppendName(out, "responseMimeType"), `"application/json"`...)
		out = chat.AppendMember(out, "responseJsonSchema", w.Format.Schema)
	}
	if w.thinking != "" {
		out = append(append(append(chat.AppendName(out, "thinkingConfig"), '{'), w.thinking...), '}')
	}
	return out
}

// appendParts appends the member parts. Only the first call among them may get a signature, as the
// model wants one there.
func (w *writer) appendParts(out []byte, parts []chat.Part) []byte {
	out = append(chat.AppendName(out, "parts"), '[')
	hasCall := false
	for i := range parts {
		p := &parts[i]
		out = append(chat.AppendComma(out), '{')
		switch p.Kind {
		case chat.Image:
			out = appendData(out, "image/"+p.Media.String(), p.Text)
		case chat.Document:
			out = appendData(out, "application/pdf", p.Text)
		case chat.Call:
			out, hasCall = w.appendCall(out, p, !hasCall), true
		case chat.Result:
			out = appendResult(out, p)
		default:
			out = chat.AppendMember(out, "text", p.Text)
		}
		out = append(out, '}')
	}
	return append(out, ']')
}

func appendData(out []byte, media string, data []byte) []byte {
	out = append(append(out, `"inlineData":{"mimeType":"`...), media...)
	out = append(append(out, `","data":"`...), data...)
	return append(out, `"}`...)
}

// unsigned takes the place of a thought's signature in a call that did not come from Google in
// this conversation: Gemini 3 refuses a turn whose first call has none. Both of Google's pages on
// thought signatures name this word for histories from elsewhere.
const unsigned = "skip_thought_signature_validator"

// checkTools refuses tools that Gemini cannot express.
func checkTools(request *chat.Request) error {
	if request.OneCall {
		return request.Refuse("parallel_tool_calls", "has no counterpart")
	}
	for i, tool := range request.Tools {
		at := "tools[" + strconv.Itoa(i) + "].function."
		if first := tool.Name[1]; first == '-' || first >= '0' && first <= '9' {
			return request.Refuse(at+"name", "begins with neither a letter nor _")
		}
		if tool.Strict != request.Tools[0].Strict {
			return request.Refuse(at+"strict", "differs among the tools, and calls are held to all schemas or to none")
		}
	}
	return nil
}

// appendTools appends the tools and the way in which they are used, if there are any tools.
func (w *writer) appendTools(out []byte) []byte {
	if len(w.Tools) == 0 {
		return out
	}
	out = append(chat.AppendName(out, "tools"), `[{"functionDeclarations":[`...)
	for _, tool := range w.Tools {
		out = chat.AppendMember(append(chat.AppendComma(out), '{'), "name", tool.Name)
		out = chat.AppendMember(out, "description", tool.Description)
		out = append(chat.AppendMember(out, "parametersJsonSchema", tool.Parameters), '}')
	}
	out = append(out, "]}]"...)
	mode := w.mode()
	if mode == "" {
		return out
	}
	out = append(chat.AppendName(out, "toolConfig"), `{"functionCallingConfig":{"mode":"`...)
	out = append(append(out, mode...), '"')
	if w.Choice == chat.ChoiceNamed {
		out = chat.AppendStrings(chat.AppendName(out, "allowedFunctionNames"), [][]byte{w.ChoiceName})
	}
	return append(out, "}}"...)
}

// mode returns the way in which tools are used; "": the model decides, and is held to no schema.
func (w *writer) mode() string {
	switch {
	case w.Choice == chat.ChoiceNone:
		return "NONE"
	case w.Choice != chat.ChoiceAuto:
		return "ANY" // also holds calls to their schemas
	case w.Tools[0].Strict:
		return "VALIDATED"
	}
	return ""
}

// appendCall appends a call of a function. The first call of a turn gets a signature if the model
// wants one.
func (w *writer) appendCall(out []byte, p *chat.Part, first bool) []byte {
	out = append(chat.AppendName(out, "functionCall"), '{')
	out = chat.AppendMember(out, "id", p.Tool.ID)
	out = chat.AppendMember(out, "name", p.Tool.Name)
	out = append(chat.AppendMember(out, "args", p.Text), '}')
	if first && w.wantsSignature {
		out = append(out, `,"thoughtSignature":"`+unsigned+`"`...)
	}
	return out
}

// appendResult puts a text where an object must stand, under the name that Google's reference
// gives to a function's result.
func appendResult(out []byte, p *chat.Part) []byte {
	text := p.Text
	if p.Tool.Parts != nil {
		text = p.Tool.Parts[0].Text
	}
	out = append(chat.AppendName(out, "functionResponse"), '{')
	out = chat.AppendMember(out, "id", p.Tool.ID)
	out = chat.AppendMember(out, "name", p.Tool.Name)
	out = chat.AppendMember(append(chat.AppendName(out, "response"), '{'), "output", text)
	return append(out, "}}"...)
}

// The members of thinkingConfig that Google's own door in OpenAI's shape puts for reasoning_effort
// (ai.google.dev, "OpenAI compatibility", Thinking). Gemini 2.5 has budgets of tokens, Gemini 3
// has levels.
var (
	budgets = map[string]string{
		"none": `"thinkingBudget":0`, "minimal": `"thinkingBudget":1024`, "low": `"thinkingBudget":1024`,
		"medium": `"thinkingBudget":8192`, "high": `"thinkingBudget":24576`,
	}
	levels = map[string]string{
		"minimal": `"thinkingLevel":"MINIMAL"`, "low": `"thinkingLevel":"LOW"`,
		"medium": `"thinkingLevel":"MEDIUM"`, "high": `"thinkingLevel":"HIGH"`,
	}
)

// thinking maps an effort to a member of thinkingConfig; "" means that Google documents none for
// the model. Pro models always think, and have no minimal level.
func thinking(model, effort string) string {
	model = strings.TrimPrefix(model, "models/")
	pro := strings.Contains(model, "-pro")
	switch {
	case strings.HasPrefix(model, "gemini-2.5-") && !(pro && effort == "none"):
		return budgets[effort]
	case strings.HasPrefix(model, "gemini-3") && pro && effort == "minimal":
		return levels["low"]
	case strings.HasPrefix(model, "gemini-3"):
		return levels[effort]
	}
	return ""
}

// wantsSignature reports whether a model refuses a turn whose first tool call has no signature.
// Gemini 3 was the first.
func wantsSignature(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	return !strings.HasPrefix(model, "gemini-1.") && !strings.HasPrefix(model, "gemini-2.")
}

// maxEmbeds is the largest number of texts in one call.
const maxEmbeds = 100

// FromEmbeddings translates a request for OpenAI's embeddings into Gemini's dialect. One text goes to
// embedContent, which Vertex has, too, and several texts go to batchEmbedContents. An error is a
// *provider.Untranslatable.
func (Dialect) FromEmbeddings(r provider.Request) (operation string, body []byte, err error) {
	if r.Model == "" {
		return "", nil, &provider.Untranslatable{Dialect: name, Field: "model", Why: "is required: it is part of the URL"}
	}
	e, err := chat.ReadEmbeddings(name, r.Body)
	if err != nil {
		return "", nil, err
	}
	if e.InputType != nil {
		return "", nil, e.Refuse("input_type", "has no counterpart")
	}
	if err := e.AtMost(maxEmbeds); err != nil {
		return "", nil, err
	}
	out := make([]byte, 0, len(r.Body)+128)
	if len(e.Inputs) > 1 {
		return provider.BatchEmbedContents, appendEmbeds(out, e, r.Model), nil
	}
	out = appendContent(append(out, '{'), e.Inputs[0])
	if e.Dimensions > 0 { // in a batch they are a member of each request
		out = append(out, `,"embedContentConfig":{"outputDimensionality":`...)
		out = append(strconv.AppendInt(out, int64(e.Dimensions), 10), '}')
	}
	return provider.EmbedContent, append(out, '}'), nil
}

// appendEmbeds appends a request for each text. Each names the model, as the URL does.
func appendEmbeds(out []byte, e *chat.Embeddings, model string) []byte {
	out = append(out, `{"requests":[`...)
	named := rawjson.AppendString(nil, "models/"+strings.TrimPrefix(model, "models/"))
	for _, input := range e.Inputs {
		out = chat.AppendMember(append(chat.AppendComma(out), '{'), "model", named)
		out = appendContent(out, input)
		if e.Dimensions > 0 {
			out = strconv.AppendInt(chat.AppendName(out, "outputDimensionality"), int64(e.Dimensions), 10)
		}
		out = append(out, '}')
	}
	return append(out, "]}"...)
}

func appendContent(out, text []byte) []byte {
	out = append(chat.AppendName(out, "content"), `{"parts":[{`...)
	return append(chat.AppendMember(out, "text", text), "}]}"...)
}
