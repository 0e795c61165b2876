package openai

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// readDocuments takes in the documents to rank: strings, or objects with a text.
func (r *request) readDocuments(v gjson.Result) {
	v.ForEach(func(_, document gjson.Result) bool {
		if document.IsObject() {
			document = document.Get("text")
		}
		r.Add(document.String())
		return v.IsArray()
	})
}

// rerankBody returns an answer in Jina's form: its usage is a total alone.
func (r *request) rerankBody(id string) []byte {
	b := fmt.Appendf(make([]byte, 0, 512), `{"id":"rerank-%s","model":%s,"object":"list","usage":{"total_tokens":%d},"results":[`,
		id, face.Quote(r.Model), r.Read())
	for i, rank := range face.Ranks(r.query, r.Texts, r.top) {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"index":%d,"relevance_score":%g,"document":{"text":%s}}`, rank.Index, rank.Score, face.Quote(r.Texts[rank.Index]))
	}
	return append(b, `]}`...)
}
