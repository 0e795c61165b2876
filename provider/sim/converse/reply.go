package converse

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// Call charges the tokens that are read and the most that may be written.
func (r *request) Call() face.Call {
	maxOutput := r.MaxTokens
	switch {
	case r.operation == invoke:
		maxOutput = 0
	case maxOutput == 0:
		maxOutput = defaultMax
	}
	return face.Call{
		Tokens: maxOutput + float64(r.Read()),
		Key:    r.key, Keyless: r.unsigned != "", Model: r.Model, Invalid: r.Complaint != "", Stream: r.operation == stream,
	}
}

// Answer returns a message, its usage, and the time it took; or vectors.
func (r *request) Answer(s face.Stamp) face.Reply {
	if r.operation == invoke {
		return r.vectors(s)
	}
	text, whole := r.Write(r.First())
	reason := "end_turn"
	if !whole {
		reason = "max_tokens"
	}
	read, written := r.Read(), face.TokensOf(len(text))
	body := fmt.Appendf(make([]byte, 0, 512), `{"metrics":{"latencyMs":%d},`+
		`"output":{"message":{"content":[{"text":%s}],"role":"assistant"}},"stopReason":"%s",`+
		`"usage":{"cacheReadInputTokenCount":0,"cacheReadInputTokens":0,"cacheWriteInputTokenCount":0,"cacheWriteInputTokens":0,`+
		`"inputTokens":%d,"outputTokens":%d,"serverToolUsage":{},"totalTokens":%d}}`,
		max(0, s.Took.Milliseconds()), face.Quote(text), reason, read, written, read+written)
	if r.operation == stream {
		return streamed(body)
	}
	return face.JSON(http.StatusOK, body)
}

// fault returns one of AWS's errors: its name in a header, its words in the body.
func fault(status int, name, message string) face.Reply {
	body := []byte("{}")
	if message != "" {
		body = fmt.Appendf(nil, `{"message":%s}`, face.Quote(message))
	}
	reply := face.JSON(status, body)
	reply.Header["X-Amzn-Errortype"] = []string{name + ":http://internal.amazon.com/coral/com.amazon.bedrock/"}
	return reply
}

// Refuse returns one of Bedrock's exceptions.
func (r *request) Refuse(v face.Verdict, _ face.Stamp) face.Reply {
	const invalid = "ValidationException"
	switch v.Kind {
	case face.RateLimited, face.TooLarge, face.InsufficientQuota:
		return fault(http.StatusTooManyRequests, "ThrottlingException", throttleMessage(v))
	case face.Unauthorized:
		return r.refuseKey()
	case face.ModelNotFound:
		return fault(http.StatusBadRequest, invalid, "The provided model identifier is invalid.")
	case face.BadRequest:
		if r.unreadable {
			return fault(http.StatusBadRequest, "SerializationException", r.Complaint)
		}
		return fault(http.StatusBadRequest, invalid, cmp.Or(r.Complaint, "The simulated provider was told to refuse this request."))
	case face.Overloaded:
		return fault(http.StatusServiceUnavailable, "ServiceUnavailableException", "Bedrock is unable to process your request.")
	case face.Malformed:
		return face.JSON(http.StatusOK, []byte(`{"__type":"InternalServerException","message":"The system encountered an unexpected error during processing. Try your request again."}`))
	}
	return fault(http.StatusInternalServerError, "InternalServerException", "The system encountered an unexpected error during processing. Try your request again.")
}

// throttleMessage returns the message of a throttle. Like Bedrock's it has no figures. A spent balance
// is a day's quota there.
func throttleMessage(v face.Verdict) string {
	switch {
	case v.Kind == face.InsufficientQuota:
		return "Too many tokens per day, please wait before trying again."
	case v.Dimension == face.Tokens:
		return "Too many tokens, please wait before trying again."
	}
	return "Too many requests, please wait before trying again."
}

// refuseKey returns the exception for a key or a signature that is missing, incomplete or wrong.
func (r *request) refuseKey() face.Reply {
	switch {
	case r.unsigned == noToken:
		return fault(http.StatusForbidden, "MissingAuthenticationTokenException", r.unsigned)
	case r.unsigned != "":
		return fault(http.StatusForbidden, "IncompleteSignatureException", r.unsigned)
	case r.signed:
		return fault(http.StatusForbidden, "UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	return fault(http.StatusForbidden, "AccessDeniedException", "Authentication failed: Please make sure your API Key is valid.")
}

// Tell names the wait, if the verdict has one.
func (r *request) Tell(h http.Header, v face.Verdict, _ face.Stamp) { v.TellWait(h, v.RetryAfterMS) }

// streamed turns a whole answer into frames. Usage and metrics come after the end of the message.
func streamed(answer []byte) face.Reply {
	whole := gjson.ParseBytes(answer)
	pieces := [][]byte{event("messageStart", `{"p":"abc","role":"assistant"}`)}
	for _, token := range face.Split(whole.Get("output.message.content.0.text").Str) {
		pieces = append(pieces, event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":%s},"p":"abcdefgh"}`, face.Quote(token)))
	}
	end := event("contentBlockStop", `{"contentBlockIndex":0,"p":"ab"}`)
	end = append(end, event("messageStop", `{"p":"abcdef","stopReason":%s}`, whole.Get("stopReason").Raw)...)
	end = append(end, event("metadata", `{"metrics":%s,"p":"a","usage":%s}`, whole.Get("metrics").Raw, whole.Get("usage").Raw)...)
	return face.Stream("application/vnd.amazon.eventstream", append(pieces, end),
		frame("exception", ":exception-type", "modelStreamErrorException",
			[]byte(`{"message":"The model stopped in the middle of its answer. Try your request again.","originalStatusCode":500}`)))
}

func event(name, format string, args ...any) []byte {
	return frame("event", ":event-type", name, fmt.Appendf(nil, format, args...))
}

// frame returns a message in AWS's form: the length of all and of the headers, the checksum of both,
// headers, payload, and the checksum of all that.
func frame(message, kind, name string, payload []byte) []byte {
	const prelude, check = 12, 4
	var headers []byte
	for _, h := range [][2]string{{kind, name}, {":content-type", "application/json"}, {":message-type", message}} {
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = append(headers, isString)
		headers = append(binary.BigEndian.AppendUint16(headers, uint16(len(h[1]))), h[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(prelude+len(headers)+len(payload)+check))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// isString is the type of a header's value.
const isString = 7
