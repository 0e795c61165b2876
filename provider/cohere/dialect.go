package cohere

import (
	"net/http"
	"strconv"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat"
	"github.com/headrace/headrace/provider/rawjson"
)

// name begins every error of this package.
const name = "cohere"

// Dialect is Cohere's own, of rerank and embeddings.
type Dialect struct{}

// Name is "cohere".
func (Dialect) Name() string { return name }

// Root is "": the version is in the paths.
func (Dialect) Root() string { return "" }

// Path returns a path of the second version. The model is in the body.
func (Dialect) Path(operation, _ string) (string, bool) {
	switch operation {
	case provider.Rerank:
		return "/v2/rerank", true
	case provider.CohereEmbed:
		return provider.CohereEmbed, true
	}
	return "", false
}

// Body returns the request's own body.
func (Dialect) Body(r provider.Request) ([]byte, error) { return r.Body, nil }

// Answer reads an answer as provider.ReplyOf does. A rerank reports searches, which are no tokens:
// its usage is not known.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	return provider.ReplyIn(status, h, body, w)
}

// Text returns false: there are scores and vectors, and no words.
func (Dialect) Text([]byte) (string, bool) { return "", false }

// FromEmbeddings translates a request for OpenAI's embeddings into the dialect. The request must
// say what the texts are for, as Cohere demands: OpenAI's own fields do not. An error is a
// *provider.Untranslatable.
func (Dialect) FromEmbeddings(r provider.Request) (operation string, body []byte, err error) {
	e, err := chat.ReadEmbeddings(name, r.Body)
	if err != nil {
		return "", nil, err
	}
	model := rawjson.AppendString(nil, r.Model)
	body, err = AppendEmbed(chat.AppendMember(append(make([]byte, 0, len(r.Body)+128), '{'), "model", model), e)
	return provider.CohereEmbed, body, err
}

// maxTexts is the largest number of texts in one call.
const maxTexts = 96

// AppendEmbed appends the members of a body for Cohere's models, except the model, and closes it:
// Bedrock has these models, too. Without truncate, Cohere cuts texts that are too long.
func AppendEmbed(out []byte, e *chat.Embeddings) ([]byte, error) {
	if e.InputType == nil {
		return nil, e.Refuse("input_type", "is missing, and one is demanded, such as search_document or search_query")
	}
	if err := e.AtMost(maxTexts); err != nil {
		return nil, err
	}
	out = chat.AppendStrings(chat.AppendName(out, "texts"), e.Inputs)
	out = chat.AppendMember(out, "input_type", e.InputType)
	out = append(out, `,"embedding_types":["float"],"truncate":"NONE"`...)
	if e.Dimensions > 0 {
		out = strconv.AppendInt(chat.AppendName(out, "output_dimension"), int64(e.Dimensions), 10)
	}
	return append(out, '}'), nil
}
