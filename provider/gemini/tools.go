package gemini

import (
	"strconv"

	"github.com/headrace/headrace/provider/chat"
)

// unsigned takes the place of a thought's signature in a call that did not come from Google in
// this conversation: Gemini 3 refuses a turn whose first call has none. Both of Google's pages on
// thought signatures name this word for histories from elsewhere.
const unsigned = "skip_thought_signature_validator"

// fitsTools refuses tools that Gemini cannot express.
func fitsTools(c *chat.Request) error {
	if c.OneCall {
		return c.Refuse("parallel_tool_calls", "has no counterpart")
	}
	for i, tool := range c.Tools {
		at := "tools[" + strconv.Itoa(i) + "].function."
		if first := tool.Name[1]; first == '-' || first >= '0' && first <= '9' {
			return c.Refuse(at+"name", "begins with neither a letter nor _")
		}
		if tool.Strict != c.Tools[0].Strict {
			return c.Refuse(at+"strict", "differs among the tools, and calls are held to all schemas or to none")
		}
	}
	return nil
}

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

func (w *writer) appendCall(out []byte, p *chat.Part, first bool) []byte {
	out = append(chat.AppendName(out, "functionCall"), '{')
	out = chat.AppendMember(out, "id", p.Tool.ID)
	out = chat.AppendMember(out, "name", p.Tool.Name)
	out = append(chat.AppendMember(out, "args", p.Text), '}')
	if first && w.signs {
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
