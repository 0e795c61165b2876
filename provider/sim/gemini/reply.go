package gemini

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

// Call charges the tokens that are read.
func (r *request) Call() face.Call {
	return face.Call{
		Tokens: max(1, float64(r.Read())),
		Key:    r.key, Keyless: r.key == "", Model: r.Model, Invalid: r.Complaint != "", Stream: r.operation == stream,
	}
}

func answer(status int, body []byte) face.Reply {
	return face.Typed(status, "application/json; charset=UTF-8", body)
}

// Answer returns the body of each operation.
func (r *request) Answer(s face.Stamp) face.Reply {
	switch r.operation {
	case embed:
		return answer(http.StatusOK, r.appendRead(appendVector([]byte(`{"embedding":`), r.First())))
	case embedBatch:
		b := []byte(`{"embeddings":[`)
		for i, text := range r.Texts {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendVector(b, text)
		}
		return answer(http.StatusOK, r.appendRead(append(b, ']')))
	}
	whole := r.generated(s)
	if r.operation == stream {
		return r.streamed(whole)
	}
	return answer(http.StatusOK, whole)
}

// appendRead ends an answer of vectors with the number of tokens read.
func (r *request) appendRead(b []byte) []byte {
	return fmt.Appendf(b, `,"usageMetadata":{"promptTokenCount":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%[1]d}]}}`, r.Read())
}

func appendVector(b []byte, text string) []byte {
	b = append(b, `{"values":`...)
	for i, x := range face.Embedding(text) {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return append(b, `]}`...)
}

// generated returns a candidate and its usage. The model's thoughts stand before the answer,
// marked, and are counted separately from it.
func (r *request) generated(s face.Stamp) []byte {
	text, whole := r.Write(r.First())
	finish := "STOP"
	if !whole {
		finish = "MAX_TOKENS"
	}
	read, written, thought, thoughts := r.Read(), face.TokensOf(len(text)), "", ""
	total := read + written
	if r.thinks {
		thinking := "The prompt's checksum is " + face.Checksum(r.First()) + "."
		thought = fmt.Sprintf(`{"text":%s,"thought":true},`, face.Quote(thinking))
		thoughts = fmt.Sprintf(`"thoughtsTokenCount":%d,`, face.TokensOf(len(thinking)))
		total += face.TokensOf(len(thinking))
	}
	b := fmt.Appendf(make([]byte, 0, 1024), `{"candidates":[{"content":{"parts":[%s{"text":%s}],"role":"model"},"finishReason":"%s"`,
		thought, face.Quote(text), finish)
	if !r.vertex {
		b = append(b, `,"index":0`...)
	}
	b = fmt.Appendf(b, `}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,%s"totalTokenCount":%d,`+
		`"promptTokensDetails":[{"modality":"TEXT","tokenCount":%[1]d}]`, read, written, thoughts, total)
	if r.vertex {
		b = fmt.Appendf(b, `,"trafficType":"ON_DEMAND","candidatesTokensDetails":[{"modality":"TEXT","tokenCount":%d}]`, written)
	}
	b = fmt.Appendf(b, `},"modelVersion":%s,`, face.Quote(r.Model))
	if r.vertex {
		b = fmt.Appendf(b, `"createTime":"%s",`, s.Now.UTC().Format(time.RFC3339Nano))
	}
	return fmt.Appendf(b, `"responseId":"%s-%x"}`, s.ID, s.Serial)
}
