package openai

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

// Answer returns the body of each operation.
func (r *request) Answer(s face.Stamp) face.Reply {
	body := r.answer(s.ID, s.Now)
	if r.stream {
		return r.streamed(body, s)
	}
	return face.JSON(http.StatusOK, body)
}

func (r *request) answer(id string, now time.Time) []byte {
	switch r.operation {
	case embeddings:
		return r.embeddingBody()
	case moderations:
		return r.moderationBody(id)
	case rerank:
		return r.rerankBody(id)
	case responses:
		return r.responseBody(id, now)
	case messages:
		return r.messageBody(id)
	case completions:
		return r.completionBody(id, now, "cmpl-", "text_completion", completionChoice)
	default:
		return r.completionBody(id, now, "chatcmpl-", "chat.completion", chatChoice)
	}
}

func chatChoice(b []byte, i int, text, finish string) []byte {
	return fmt.Appendf(b, `{"index":%d,"message":{"role":"assistant","content":%s,"refusal":null},"logprobs":null,"finish_reason":"%s"}`,
		i, face.Quote(text), finish)
}

func completionChoice(b []byte, i int, text, finish string) []byte {
	return fmt.Appendf(b, `{"text":%s,"index":%d,"logprobs":null,"finish_reason":"%s"}`, face.Quote(text), i, finish)
}

func (r *request) completionBody(id string, now time.Time, prefix, object string, choice func([]byte, int, string, string) []byte) []byte {
	b := fmt.Appendf(make([]byte, 0, 768), `{"id":"%s%s","object":"%s","created":%d,"model":%s,"choices":[`,
		prefix, id, object, now.Unix(), face.Quote(r.Model))
	written := 0
	for i, prompt := range r.Texts {
		if i > 0 {
			b = append(b, ',')
		}
		text, whole := r.Write(prompt)
		finish := "stop"
		if !whole {
			finish = "length"
		}
		written += face.TokensOf(len(text))
		b = choice(b, i, text, finish)
	}
	read := r.Read()
	return fmt.Appendf(b, `],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"system_fingerprint":"sim"}`,
		read, written, read+written)
}

func (r *request) responseBody(id string, now time.Time) []byte {
	text, whole := r.Write(r.Texts[0])
	status, incomplete := "completed", "null"
	if !whole {
		status, incomplete = "incomplete", `{"reason":"max_output_tokens"}`
	}
	read, written := r.Read(), face.TokensOf(len(text))
	return fmt.Appendf(make([]byte, 0, 768), `{"id":"resp_%s","object":"response","created_at":%d,"status":"%s","error":null,`+
		`"incomplete_details":%s,"model":%s,"output":[{"type":"message","id":"msg_%s","status":"%s","role":"assistant",`+
		`"content":[{"type":"output_text","text":%s,"annotations":[]}]}],"usage":{"input_tokens":%d,`+
		`"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},`+
		`"total_tokens":%d},"system_fingerprint":"sim"}`,
		id, now.Unix(), status, incomplete, face.Quote(r.Model), id, status, face.Quote(text), read, written, read+written)
}

// messageBody returns an answer in Anthropic's dialect.
func (r *request) messageBody(id string) []byte {
	text, whole := r.Write(r.Texts[0])
	reason := "end_turn"
	if !whole {
		reason = "max_tokens"
	}
	return fmt.Appendf(make([]byte, 0, 512), `{"id":"msg_%s","type":"message","role":"assistant","model":%s,`+
		`"content":[{"type":"text","text":%s}],"stop_reason":"%s","stop_sequence":null,`+
		`"usage":{"input_tokens":%d,"output_tokens":%d}}`,
		id, face.Quote(r.Model), face.Quote(text), reason, r.Read(), face.TokensOf(len(text)))
}

func (r *request) embeddingBody() []byte {
	b := []byte(`{"object":"list","data":[`)
	for i, text := range r.Texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"object":"embedding","index":%d,"embedding":`, i)
		b = r.appendVector(b, face.Embedding(text))
		b = append(b, '}')
	}
	read := r.Read()
	return fmt.Appendf(b, `],"model":%s,"usage":{"prompt_tokens":%d,"total_tokens":%d},"system_fingerprint":"sim"}`,
		face.Quote(r.Model), read, read)
}

func (r *request) appendVector(b []byte, v []float32) []byte {
	if r.base64 {
		return append(append(append(b, '"'), face.Base64Floats(v)...), '"')
	}
	for i, x := range v {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return append(b, ']')
}

func modelList(models []string, now time.Time) []byte {
	if len(models) == 0 {
		models = []string{"sim"}
	}
	entries := make([]string, len(models))
	for i, m := range models {
		entries[i] = fmt.Sprintf(`{"id":%s,"object":"model","created":%d,"owned_by":"sim"}`, face.Quote(m), now.Unix())
	}
	return []byte(`{"object":"list","data":[` + strings.Join(entries, ",") + `]}`)
}
