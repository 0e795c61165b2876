package converse

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// maxTexts is the largest number of texts that Cohere's models take at once.
const maxTexts = 96

// uses are the purposes for which Cohere's models embed a text.
var uses = []string{"search_document", "search_query", "classification", "clustering"}

// readInvoke reads a body of InvokeModel for models that embed: one text for Titan, and a list
// for all others.
func (r *request) readInvoke(root gjson.Result) {
	texts := root.Get("texts")
	switch text := root.Get("inputText"); {
	case r.isTitan() && text.Type != gjson.String:
		r.Complain("", "Malformed input request: #: required key [inputText] not found, please reformat your input and try again.")
	case r.isTitan():
		r.Add(text.Str)
	case !slices.Contains(uses, root.Get("input_type").Str):
		r.Complain("", "Malformed input request: #: required key [input_type] not found, please reformat your input and try again.")
	case !texts.IsArray() || texts.Get("#").Num < 1 || texts.Get("#").Num > maxTexts:
		r.Complain("", fmt.Sprintf("Malformed input request: #/texts: expected 1 to %d texts, please reformat your input and try again.", maxTexts))
	}
	texts.ForEach(func(_, text gjson.Result) bool {
		if !r.isTitan() {
			r.Add(text.String())
		}
		return texts.IsArray()
	})
}

func (r *request) isTitan() bool { return strings.Contains(r.Model, "titan") }

// vectors returns an answer of InvokeModel. A header holds the number of tokens read.
func (r *request) vectors(s face.Stamp) face.Reply {
	var b []byte
	if r.isTitan() {
		vector := appendVector(nil, r.First())
		b = fmt.Appendf(nil, `{"embedding":%s,"embeddingsByType":{"float":%[1]s},"inputTextTokenCount":%d}`, vector, r.Read())
	} else {
		b = fmt.Appendf(nil, `{"id":"%s","embeddings":{"float":[`, s.ID)
		for i, text := range r.Texts {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendVector(b, text)
		}
		b = append(b, `]},"response_type":"embeddings_by_type"}`...)
	}
	a := face.JSON(http.StatusOK, b)
	a.Header["X-Amzn-Bedrock-Input-Token-Count"] = []string{strconv.Itoa(r.Read())}
	return a
}

func appendVector(b []byte, text string) []byte {
	for i, x := range face.Embedding(text) {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return append(b, ']')
}
