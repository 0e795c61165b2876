package openai

import (
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// ModelsPath returns the path of the list of models.
func (Dialect) ModelsPath() string { return "/models" }

// facePaths are the operations of OpenAI's own, whose names are their paths.
var facePaths = []string{provider.Chat, provider.Responses, provider.Completions, provider.Embeddings, provider.Moderations}

// Paths lists OpenAI's own operations.
func (Dialect) Paths() []string { return facePaths }

// Find knows a path if it is that of an operation. The model stands in the body.
func (Dialect) Find(path string) (operation, model string, streams, ok bool) {
	for _, p := range facePaths {
		if p == path {
			return p, "", false, true
		}
	}
	return "", "", false, false
}

// Refuse returns OpenAI's error object.
func (Dialect) Refuse(r provider.Refusal) (http.Header, []byte) {
	return http.Header{"Content-Type": {"application/json"}}, append(appendError([]byte(`{"error":`), r), '}')
}

// Fault returns an event with the error object. Those of Responses have a name and no object around
// their members.
func (Dialect) Fault(operation string, r provider.Refusal) []byte {
	if operation == provider.Responses {
		out := append([]byte(`event: error`+"\n"+`data: {"type":"error","code":`), rawjson.AppendString(nil, r.Code)...)
		out = append(rawjson.AppendString(append(out, `,"message":`...), r.Message), `,"param":null}`...)
		return append(out, "\n\n"...)
	}
	return append(append(appendError([]byte(`data: {"error":`), r), '}'), "\n\n"...)
}

// Ping returns a comment.
func (Dialect) Ping(text string) []byte {
	return []byte(": " + strings.ReplaceAll(text, "\n", " ") + "\n\n")
}

func appendError(out []byte, r provider.Refusal) []byte {
	kind := "invalid_request_error"
	switch {
	case r.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case r.Status == http.StatusPaymentRequired:
		kind = "insufficient_quota"
	case r.Status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	out = rawjson.AppendString(append(out, `{"message":`...), r.Message)
	out = append(append(append(out, `,"type":"`...), kind...), `","param":null,"code":`...)
	return append(rawjson.AppendString(out, r.Code), '}')
}
