package openai

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/anthropic"
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

// answer returns the whole answer of the operation; a stream is made from it later.
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

// completionBody returns an answer with one choice for each text. A chat has only one; a completion
// has one for each prompt.
func (r *request) completionBody(id string, now time.Time, prefix, object string, choice func([]byte, int, string, string) []byte) []byte {
	b := fmt.Appendf(make([]byte, 0, 768), `{"id":"%s%s","object":"%s","created":%d,"model":%s,"choices":[`,
		prefix, id, object, now.Unix(), face.Quote(r.Model))
	written := 0
	b = face.Each(b, r.Texts, func(b []byte, i int, prompt string) []byte {
		text, whole := r.Write(prompt)
		finish := "stop"
		if !whole {
			finish = "length"
		}
		written += face.TokensOf(len(text))
		return choice(b, i, text, finish)
	})
	read := r.Read()
	return fmt.Appendf(b, `],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"system_fingerprint":"sim"%s}`,
		read, written, read+written, r.tierMember())
}

// responseBody returns an answer of Responses, with a single message. An answer that is cut at its
// bound is incomplete there.
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
		`"total_tokens":%d},"system_fingerprint":"sim"%s}`,
		id, now.Unix(), status, incomplete, face.Quote(r.Model), id, status, face.Quote(text), read, written, read+written, r.tierMember())
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

// embeddingBody returns a vector for each text, in base64 if the request asks for that.
func (r *request) embeddingBody() []byte {
	b := face.Each([]byte(`{"object":"list","data":[`), r.Texts, func(b []byte, i int, text string) []byte {
		b = fmt.Appendf(b, `{"object":"embedding","index":%d,"embedding":`, i)
		if r.base64 {
			return append(append(append(b, '"'), face.Base64Floats(face.Embedding(text))...), `"}`...)
		}
		return append(face.AppendVector(b, text), '}')
	})
	read := r.Read()
	return fmt.Appendf(b, `],"model":%s,"usage":{"prompt_tokens":%d,"total_tokens":%d},"system_fingerprint":"sim"}`,
		face.Quote(r.Model), read, read)
}

// defaultModeration is the model of a moderation that names none.
const defaultModeration = "omni-moderation-latest"

// categories lists the categories for which a text may be flagged.
var categories = [...]string{
	"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm",
	"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic",
}

// moderationBody flags nothing. The scores depend on the text, so that they prove which text they
// belong to; all are below a thousandth. It has no usage: a moderation is free.
func (r *request) moderationBody(id string) []byte {
	b := fmt.Appendf(make([]byte, 0, 1536), `{"id":"modr-%s","model":%s,"results":[`, id, face.Quote(r.Model))
	return append(face.Each(b, r.Texts, func(b []byte, _ int, text string) []byte {
		b = append(b, `{"flagged":false,"categories":`...)
		b = eachCategory(b, func(b []byte) []byte { return append(b, "false"...) })
		sum := face.Sum(text)
		b = append(b, `,"category_scores":`...)
		b = eachCategory(b, func(b []byte) []byte {
			sum = face.Mix(sum)
			return strconv.AppendFloat(b, float64(sum>>11)/(1<<53)/1000, 'g', -1, 64)
		})
		b = append(b, `,"category_applied_input_types":`...)
		b = eachCategory(b, func(b []byte) []byte { return append(b, `["text"]`...) })
		return append(b, '}')
	}), `]}`...)
}

// eachCategory appends an object with a value for each category.
func eachCategory(b []byte, value func([]byte) []byte) []byte {
	for i, name := range categories {
		b = append(append(append(b, "{,"[min(i, 1)]), face.Quote(name)...), ':')
		b = value(b)
	}
	return append(b, '}')
}

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
	return append(face.Each(b, face.Ranks(r.query, r.Texts, r.top), func(b []byte, _ int, rank face.Rank) []byte {
		return fmt.Appendf(b, `{"index":%d,"relevance_score":%g,"document":{"text":%s}}`, rank.Index, rank.Score, face.Quote(r.Texts[rank.Index]))
	}), `]}`...)
}

// eventStream is the content type of OpenAI's streams.
const eventStream = face.EventStream + "; charset=utf-8"

// streamed turns a whole answer into a stream.
func (r *request) streamed(answer []byte, s face.Stamp) face.Reply {
	whole := gjson.ParseBytes(answer)
	switch r.operation {
	case messages:
		return anthropic.Stream(answer, s)
	case responses:
		return r.responseEvents(whole)
	case completions:
		return r.chunks(whole, "text_completion", "text", func(i int, text, finish string) string {
			return fmt.Sprintf(`{"text":%s,"index":%d,"logprobs":null,"finish_reason":%s}`, text, i, finish)
		})
	}
	return r.chunks(whole, "chat.completion.chunk", "message.content", func(i int, text, finish string) string {
		delta := ""
		if text != `""` {
			delta = `"content":` + text
		}
		return fmt.Sprintf(`{"index":%d,"delta":{%s},"logprobs":null,"finish_reason":%s}`, i, delta, finish)
	})
}

// chunks returns the choices token by token and in turns, then the reason for the end of each. The
// usage has a chunk of its own without choices, if it was asked for, and is null in all others.
func (r *request) chunks(whole gjson.Result, object, text string, choice func(int, string, string) string) face.Reply {
	var pieces [][]byte
	add := func(choices, usage, padding string) {
		if r.includesUsage {
			usage = `,"usage":` + usage
		} else {
			usage = ""
		}
		pieces = append(pieces, face.Event("", fmt.Appendf(nil, `{"id":%s,"object":"%s","created":%s,"model":%s,"choices":[%s]%s,"system_fingerprint":"sim"%s%s}`,
			whole.Get("id").Raw, object, whole.Get("created").Raw, whole.Get("model").Raw, choices, usage, r.tierMember(), padding)))
	}
	choices := whole.Get("choices").Array()
	if r.operation == chat {
		add(`{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}`, "null", "")
	}
	for round, more := 0, true; more; round++ {
		more = false
		for i, c := range choices {
			if tokens := face.Split(c.Get(text).Str); round < len(tokens) {
				add(choice(i, string(face.Quote(tokens[round])), "null"), "null", r.padding(tokens[round]))
				more = true
			}
		}
	}
	for i, c := range choices {
		add(choice(i, `""`, c.Get("finish_reason").Raw), "null", "")
	}
	if r.includesUsage {
		add("", whole.Get("usage").Raw, "")
	}
	last := len(pieces) - 1
	pieces[last] = append(pieces[last], face.Event("", []byte("[DONE]"))...)
	return face.Stream(eventStream, pieces, face.Event("", errorBody(serverErrorText, "server_error", "", "")))
}

// obfuscated is the length to which padding fills up a token, in characters.
const obfuscated = 16

// padding hides the length of a token from listeners, unless the request turns it off.
func (r *request) padding(token string) string {
	if r.noPadding {
		return ""
	}
	return fmt.Sprintf(`,"obfuscation":"%s"`, strings.Repeat("x", obfuscated-len(token)))
}

// responseEvents returns the events of a response. The last one contains the whole response.
func (r *request) responseEvents(whole gjson.Result) face.Reply {
	var pieces [][]byte
	serial := 0
	event := func(name, format string, args ...any) []byte {
		data := fmt.Appendf(nil, `{"type":"%s","sequence_number":%d,`, name, serial)
		serial++
		return face.Event(name, append(fmt.Appendf(data, format, args...), '}'))
	}
	add := func(name, format string, args ...any) { pieces = append(pieces, event(name, format, args...)) }
	item, part := whole.Get("output.0"), whole.Get("output.0.content.0")
	id, text := item.Get("id").Raw, part.Get("text")
	location := fmt.Sprintf(`"item_id":%s,"output_index":0,"content_index":0`, id)
	startOf := func(status, fault string) string {
		return fmt.Sprintf(`"response":{"id":%s,"object":"response","created_at":%s,"status":"%s","error":%s,"incomplete_details":null,"model":%s,"output":[],"usage":null,"system_fingerprint":"sim"}`,
			whole.Get("id").Raw, whole.Get("created_at").Raw, status, fault, whole.Get("model").Raw)
	}
	add("response.created", "%s", startOf("in_progress", "null"))
	add("response.in_progress", "%s", startOf("in_progress", "null"))
	add("response.output_item.added", `"output_index":0,"item":{"type":"message","id":%s,"status":"in_progress","role":"assistant","content":[]}`, id)
	add("response.content_part.added", `%s,"part":{"type":"output_text","text":"","annotations":[]}`, location)
	for _, token := range face.Split(text.Str) {
		add("response.output_text.delta", `%s,"delta":%s,"logprobs":[]%s`, location, face.Quote(token), r.padding(token))
	}
	add("response.output_text.done", `%s,"text":%s,"logprobs":[]`, location, text.Raw)
	add("response.content_part.done", `%s,"part":%s`, location, part.Raw)
	add("response.output_item.done", `"output_index":0,"item":%s`, item.Raw)
	add("response."+whole.Get("status").Str, `"response":%s`, whole.Raw)
	serial = len(pieces) / 2 // the numbers go on from where it fails
	failure := event("error", `"error":{"type":"server_error","code":"server_error","message":%s,"param":null}`, face.Quote(serverErrorText))
	failure = append(failure, event("response.failed", "%s", startOf("failed", fmt.Sprintf(`{"code":"server_error","message":%s}`, face.Quote(serverErrorText))))...)
	return face.Stream(eventStream, pieces, failure)
}
