package converse

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat"
	"github.com/headrace/headrace/provider/cohere"
	"github.com/headrace/headrace/provider/rawjson"
)

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
func readCount(h http.Header, body []byte) (u provider.Usage, told bool) {
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
