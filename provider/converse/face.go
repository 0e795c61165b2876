package converse

import (
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"net/url"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// faceRoot begins the paths of models.
const faceRoot = "/model/"

// streamEnd ends the path of the operation whose answer is a stream.
const streamEnd = "/converse-stream"

// Paths lists the operations of models.
func (Dialect) Paths() []string {
	return []string{faceRoot + "M" + provider.Converse, faceRoot + "M" + streamEnd}
}

// Find takes the model out of the path.
func (Dialect) Find(path string) (operation, model string, streams, ok bool) {
	rest, is := strings.CutPrefix(path, faceRoot)
	model, end, found := strings.Cut(rest, "/")
	streams = "/"+end == streamEnd
	if !is || !found || model == "" || !streams && "/"+end != provider.Converse {
		return "", "", false, false
	}
	model, err := url.PathUnescape(model)
	return provider.Converse, model, streams, err == nil
}

// exceptions are AWS's names of errors, by status.
var exceptions = map[int]string{
	http.StatusUnauthorized: "UnrecognizedClientException", http.StatusForbidden: "AccessDeniedException", http.StatusNotFound: "ResourceNotFoundException",
	http.StatusPaymentRequired: "ServiceQuotaExceededException", http.StatusTooManyRequests: "ThrottlingException",
	http.StatusServiceUnavailable: "ServiceUnavailableException", http.StatusGatewayTimeout: "ModelTimeoutException",
}

// exception returns the name of Bedrock's exception for a status.
func exception(status int) string {
	switch name := exceptions[status]; {
	case name != "":
		return name
	case status >= http.StatusInternalServerError:
		return "InternalServerException"
	}
	return "ValidationException"
}

// Refuse returns one of AWS's errors: its name in a header, its words in the body.
func (Dialect) Refuse(r provider.Refusal) (http.Header, []byte) {
	return http.Header{"Content-Type": {"application/json"}, "X-Amzn-Errortype": {exception(r.Status)}}, appendError(r)
}

func appendError(r provider.Refusal) []byte {
	out := rawjson.AppendString([]byte(`{"message":`), r.Message)
	return append(rawjson.AppendString(append(out, `,"code":`...), r.Code), '}')
}

// Fault returns a frame with an exception. Its name begins with a small letter there.
func (Dialect) Fault(_ string, r provider.Refusal) []byte {
	name := exception(r.Status)
	return frame(appendError(r), ":exception-type", strings.ToLower(name[:1])+name[1:], ":content-type", "application/json", ":message-type", "exception")
}

// Ping returns nothing: a frame is an event to every client.
func (Dialect) Ping(string) []byte { return nil }

// frame returns a message of AWS's event streams: lengths, headers, payload, and two checksums.
func frame(payload []byte, headers ...string) []byte {
	const text, sums = 7, 16 // the type of a header that is a text; lengths and checksums in bytes
	var encoded []byte
	for i := 0; i+1 < len(headers); i += 2 {
		encoded = append(append(encoded, byte(len(headers[i]))), headers[i]...)
		encoded = binary.BigEndian.AppendUint16(append(encoded, text), uint16(len(headers[i+1])))
		encoded = append(encoded, headers[i+1]...)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(sums+len(encoded)+len(payload)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(encoded)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, encoded...), payload...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}
