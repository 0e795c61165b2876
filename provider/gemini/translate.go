package gemini

import (
	"strconv"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat"
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
	c, err := chat.Read("gemini", r.Body)
	if err != nil {
		return nil, err
	}
	if err := fits(c); err != nil {
		return nil, err
	}
	thinks := thinking(r.Model, c.Effort)
	if c.Effort != "" && thinks == "" {
		return nil, c.Refuse("reasoning_effort", "is "+strconv.QuoteToASCII(c.Effort)+", which has no documented counterpart for the model "+strconv.Quote(r.Model))
	}
	w := &writer{Request: c, thinks: thinks, signs: wantsSignature(r.Model)}
	return w.build(make([]byte, 0, len(r.Body)+256)), nil
}

// fits refuses requests that the dialect cannot express.
func fits(c *chat.Request) error {
	switch {
	case c.User != nil:
		return c.Refuse("user", "has no counterpart")
	case len(c.Stop) > maxStops:
		return c.Refuse("stop", "has more than "+strconv.Itoa(maxStops)+" strings")
	case c.Format != nil && c.Format.Description != nil:
		return c.Refuse("response_format.json_schema.description", "has no counterpart")
	}
	if c.Seed != nil {
		if _, err := strconv.ParseInt(string(c.Seed), 10, 32); err != nil {
			return c.Refuse("seed", "is beyond 32 bits")
		}
	}
	for _, turn := range c.Turns {
		for i := range turn.Parts {
			if err := fitsPart(c, &turn.Parts[i]); err != nil {
				return err
			}
		}
	}
	if err := fitsTools(c); err != nil {
		return err
	}
	return c.CheckSchemas(&schemaWords)
}

func fitsPart(c *chat.Request, p *chat.Part) error {
	switch {
	case p.Kind == chat.Result && len(p.Tool.Parts) > 1:
		return c.RefusePart(p, "", "has several parts, and there is a place for one text")
	case p.Kind == chat.Link:
		return c.RefusePart(p, "image_url.url", "is an address of the web, and the image must be in the body")
	case p.Media == chat.GIF:
		return c.RefusePart(p, "image_url.url", "is a gif, which is not taken")
	}
	return nil
}

// A writer writes the contents of a chat that fits.
type writer struct {
	*chat.Request
	thinks string // a member of thinkingConfig; "" is none
	signs  bool   // the model wants a signature with the first call of a turn
}

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
	said := len(out)
	if out = w.appendConfig(out); len(out) == said {
		return append(out[:before], '}')
	}
	return append(out, "}}"...)
}

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
	if w.thinks != "" {
		out = append(append(append(chat.AppendName(out, "thinkingConfig"), '{'), w.thinks...), '}')
	}
	return out
}

func (w *writer) appendParts(out []byte, parts []chat.Part) []byte {
	out = append(chat.AppendName(out, "parts"), '[')
	called := false
	for i := range parts {
		p := &parts[i]
		out = append(chat.AppendComma(out), '{')
		switch p.Kind {
		case chat.Image:
			out = appendData(out, "image/"+p.Media.String(), p.Text)
		case chat.Document:
			out = appendData(out, "application/pdf", p.Text)
		case chat.Call:
			out, called = w.appendCall(out, p, !called), true
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
