package gemini

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// streamed turns a whole answer into chunks of its own form: thoughts and text token by token.
// Each chunk of AI Studio has the usage so far; of Vertex only the last one has usage.
func (r *request) streamed(answer []byte) face.Reply {
	whole := gjson.ParseBytes(answer)
	usage, candidate := whole.Get("usageMetadata"), whole.Get("candidates.0")
	tail := fmt.Sprintf(`"modelVersion":%s,`, whole.Get("modelVersion").Raw)
	if created := whole.Get("createTime"); created.Exists() {
		tail += fmt.Sprintf(`"createTime":%s,`, created.Raw)
	}
	tail += `"responseId":` + whole.Get("responseId").Raw
	place := ""
	if candidate.Get("index").Exists() {
		place = `,"index":0`
	}
	var chunks []string
	written := map[bool]int{} // tokens of thoughts, and of text
	parts := candidate.Get("content.parts").Array()
	for i, part := range parts {
		mark, thought := "", part.Get("thought").Bool()
		if thought {
			mark = `,"thought":true`
		}
		tokens := face.Split(part.Get("text").Str)
		for j, token := range tokens {
			written[thought]++
			counts, finish := r.countsSoFar(usage, written), ""
			if i == len(parts)-1 && j == len(tokens)-1 {
				counts, finish = usage.Raw, fmt.Sprintf(`,"finishReason":%s`, candidate.Get("finishReason").Raw)
			}
			chunks = append(chunks, fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%s%s}],"role":"model"}%s%s}],"usageMetadata":%s,%s}`,
				face.Quote(token), mark, finish, place, counts, tail))
		}
	}
	failure := strings.TrimSpace(string(fault(http.StatusServiceUnavailable, unavailable, overloaded).Body))
	if r.sse {
		return events(chunks, failure)
	}
	return listed(chunks, failure)
}

func (r *request) countsSoFar(usage gjson.Result, written map[bool]int) string {
	if r.vertex {
		return `{"trafficType":"ON_DEMAND"}`
	}
	read, thoughts := int(usage.Get("promptTokenCount").Num), ""
	if n := written[true]; n > 0 {
		thoughts = fmt.Sprintf(`"thoughtsTokenCount":%d,`, n)
	}
	return fmt.Sprintf(`{"promptTokenCount":%d,"candidatesTokenCount":%d,%s"totalTokenCount":%d,"promptTokensDetails":%s}`,
		read, written[false], thoughts, read+written[false]+written[true], usage.Get("promptTokensDetails").Raw)
}

// events returns chunks as server-sent events, whose lines Google ends as HTTP does.
func events(chunks []string, failure string) face.Reply {
	event := func(data string) []byte { return []byte("data: " + data + "\r\n\r\n") }
	var pieces [][]byte
	for _, chunk := range chunks {
		pieces = append(pieces, event(chunk))
	}
	return face.Stream(face.EventStream, pieces, event(failure))
}

// listed returns chunks as one JSON list.
func listed(chunks []string, failure string) face.Reply {
	var pieces [][]byte
	for i, chunk := range chunks {
		before := ",\r\n"
		if i == 0 {
			before = "["
		}
		pieces = append(pieces, []byte(before+chunk))
	}
	last := len(pieces) - 1
	pieces[last] = append(pieces[last], ']')
	return face.Stream("application/json; charset=UTF-8", pieces, []byte(",\r\n"+failure+"]"))
}
