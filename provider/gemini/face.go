package gemini

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// ModelsPath returns the path of the list of models.
func (Dialect) ModelsPath() string { return "/models" }

// faceRoot begins the paths of models.
const faceRoot = "/v1beta/models/"

// streamMethod is the name of the method whose answer is a stream.
const streamMethod = ":streamGenerateContent"

// Paths lists the operations of models.
func (Dialect) Paths() []string {
	return []string{
		faceRoot + "M" + provider.GenerateContent, faceRoot + "M" + streamMethod,
		faceRoot + "M" + provider.EmbedContent, faceRoot + "M" + provider.BatchEmbedContents,
	}
}

// Find takes the model and its method out of the path.
func (Dialect) Find(path string) (operation, model string, streams, ok bool) {
	rest, is := strings.CutPrefix(path, faceRoot)
	at := strings.LastIndexByte(rest, ':')
	if !is || at <= 0 || strings.Contains(rest, "/") {
		return "", "", false, false
	}
	model, err := url.PathUnescape(rest[:at])
	operation, streams = rest[at:], rest[at:] == streamMethod
	switch operation {
	case streamMethod:
		operation = provider.GenerateContent
	case provider.GenerateContent, provider.EmbedContent, provider.BatchEmbedContents:
	default:
		return "", "", false, false
	}
	return operation, model, streams, err == nil
}

// Refuse returns Google's error object, with the code as the reason among its details.
func (Dialect) Refuse(r provider.Refusal) (http.Header, []byte) {
	return http.Header{"Content-Type": {"application/json"}}, appendError(nil, r)
}

// Fault returns an event with the object that Refuse returns.
func (Dialect) Fault(_ string, r provider.Refusal) []byte {
	return append(appendError([]byte("data: "), r), "\n\n"...)
}

// Ping returns an event of nothing: Google's own clients know no comments, and that for Go takes a single
// empty line for the beginning of a wrong event.
func (Dialect) Ping(string) []byte { return []byte("\n\n") }

// statuses are Google's words for the kinds of errors, by status.
var statuses = map[int]string{
	http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED", http.StatusNotFound: "NOT_FOUND",
	http.StatusPaymentRequired: "RESOURCE_EXHAUSTED", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED",
	http.StatusServiceUnavailable: "UNAVAILABLE", http.StatusGatewayTimeout: "DEADLINE_EXCEEDED",
}

func appendError(out []byte, r provider.Refusal) []byte {
	status := statuses[r.Status]
	switch {
	case status != "":
	case r.Status >= http.StatusInternalServerError:
		status = "INTERNAL"
	default:
		status = "INVALID_ARGUMENT"
	}
	out = strconv.AppendInt(append(out, `{"error":{"code":`...), int64(r.Status), 10)
	out = rawjson.AppendString(append(out, `,"message":`...), r.Message)
	out = append(append(append(out, `,"status":"`...), status...), `","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":`...)
	return append(rawjson.AppendString(out, r.Code), `,"domain":"headrace"}]}}`...)
}
