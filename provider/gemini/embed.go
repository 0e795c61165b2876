package gemini

import (
	"strconv"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat"
	"github.com/headrace/headrace/provider/rawjson"
)

// maxEmbeds is the largest number of texts in one call.
const maxEmbeds = 100

// FromEmbeddings translates a request for OpenAI's embeddings into the dialect. One text goes to
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
	if e.Dimensions > 0 {
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
