package anthropic

import (
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// ModelsPath returns the path of the list of models.
func (Dialect) ModelsPath() string { return "/v1/models" }

// Paths lists the one operation.
func (Dialect) Paths() []string { return []string{provider.Messages} }

// Find knows the path of messages. The model stands in the body.
func (Dialect) Find(path string) (operation, model string, streams, ok bool) {
	return provider.Messages, "", false, path == provider.Messages
}

// Refuse returns Anthropic's error object, with a code that theirs has not.
func (Dialect) Refuse(r provider.Refusal) (http.Header, []byte) {
	return http.Header{"Content-Type": {"application/json"}}, appendError(nil, r)
}

// Fault returns an event of the name error, with the object that Refuse returns.
func (Dialect) Fault(_ string, r provider.Refusal) []byte {
	return append(appendError([]byte("event: error\ndata: "), r), "\n\n"...)
}

// Ping returns a comment.
func (Dialect) Ping(text string) []byte {
	return []byte(": " + strings.ReplaceAll(text, "\n", " ") + "\n\n")
}

// kinds are Anthropic's words for the kinds of errors, by status.
var kinds = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
	http.StatusServiceUnavailable: "overloaded_error", http.StatusGatewayTimeout: "timeout_error",
}

func appendError(out []byte, r provider.Refusal) []byte {
	kind := kinds[r.Status]
	switch {
	case kind != "":
	case r.Status >= http.StatusInternalServerError:
		kind = "api_error"
	default:
		kind = "invalid_request_error"
	}
	out = append(append(append(out, `{"type":"error","error":{"type":"`...), kind...), `","message":`...)
	out = append(rawjson.AppendString(out, r.Message), `,"code":`...)
	return append(rawjson.AppendString(out, r.Code), "}}"...)
}
