package journal

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/headrace/headrace/provider/rawjson"
)

// Line is one line of a result or errors file, in the form of OpenAI's offline
// batches with one field more. encoding/json reads what AppendLine writes.
type Line struct {
	ID       string    `json:"id"`
	CustomID string    `json:"custom_id"`
	Response *Response `json:"response"` // nil if the provider never answered
	Error    *Failure  `json:"error"`    // nil for a success
	Headrace Headrace  `json:"headrace"`
}

// Response is the provider's answer.
type Response struct {
	StatusCode int    `json:"status_code"`
	RequestID  string `json:"request_id"`
	// Body is what the provider sent: JSON as it came, on one line; anything else
	// is written as a JSON string, nothing as null.
	Body json.RawMessage `json:"body"`
	// Checked says that Body is known to be valid JSON, so that it is not parsed once
	// more. Line breaks and bad UTF-8 in it do no harm; what is not JSON spoils the file.
	Checked bool `json:"-"`
}

// Failure says why an item failed.
type Failure struct {
	Code    string `json:"code"` // the kind of failure
	Message string `json:"message"`
}

// Headrace is what this program adds: how the answer was come by.
type Headrace struct {
	Line     int    `json:"line"` // in the input, from 1
	Key      string `json:"key"`  // what was asked, 32 hex digits
	Attempts int    `json:"attempts"`
	Lane     string `json:"lane"`
	Model    string `json:"model"`
	// Simulated says that no provider was asked: the answer is made up.
	Simulated bool  `json:"simulated,omitempty"`
	Usage     Usage `json:"usage"`
	// CostUSD is nil when it is not known: an unknown cost is never 0.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// Where the time went, in milliseconds: before the first call, between calls,
	// and in the call that ended the item.
	QueuedMS  int64           `json:"queued_ms"`
	WaitedMS  int64           `json:"waited_ms"`
	LatencyMS int64           `json:"latency_ms"`
	Metadata  json.RawMessage `json:"metadata,omitempty"` // the input line's own
	// Sum guards the line: 8 hex digits, the CRC-32C of all its bytes before
	// `,"sum"`. AppendLine makes it, whatever stands here.
	Sum string `json:"sum"`
}

// Usage counts tokens as the provider billed them.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	CachedTokens int64 `json:"cached_tokens"` // part of InputTokens
}

// idDigits is how much of the key a line's id shows: 24 hex digits, 96 bits, as
// long as the ids that OpenAI's own result files bear.
const idDigits = 24

// LineOf begins the line of an item: of its headrace, what is known before its call.
func LineOf(customID string, h Headrace) Line {
	return Line{ID: resultID(h.Key), CustomID: customID, Headrace: h}
}

// resultID is the id of the output line of an item with this key.
func resultID(key string) string { return "hr-" + key[:min(idDigits, len(key))] }

// AppendLine appends l and a line feed to dst. What it appends is one line of
// valid JSON and valid UTF-8, whatever l holds.
func AppendLine(dst []byte, l *Line) []byte {
	start := len(dst)
	dst = appendField(dst, `{"id":`, l.ID)
	dst = appendField(dst, `,"custom_id":`, l.CustomID)
	dst = appendResponse(dst, l.Response)
	dst = appendFailure(dst, l.Error)
	dst = appendHeadrace(dst, &l.Headrace)
	return append(appendSum(dst, dst[start:]), '}', '}', '\n')
}

func appendField(dst []byte, name, value string) []byte {
	return rawjson.AppendString(append(dst, name...), value)
}

func appendNumber(dst []byte, name string, value int64) []byte {
	return strconv.AppendInt(append(dst, name...), value, 10)
}

func appendResponse(dst []byte, r *Response) []byte {
	if r == nil {
		return append(dst, `,"response":null`...)
	}
	dst = appendNumber(dst, `,"response":{"status_code":`, int64(r.StatusCode))
	dst = appendField(dst, `,"request_id":`, r.RequestID)
	dst = appendJSON(append(dst, `,"body":`...), r.Body, r.Checked)
	return append(dst, '}')
}

func appendFailure(dst []byte, f *Failure) []byte {
	if f == nil {
		return append(dst, `,"error":null`...)
	}
	dst = appendField(dst, `,"error":{"code":`, f.Code)
	dst = appendField(dst, `,"message":`, f.Message)
	return append(dst, '}')
}

func appendHeadrace(dst []byte, h *Headrace) []byte {
	dst = appendNumber(dst, `,"headrace":{"line":`, int64(h.Line))
	dst = appendField(dst, `,"key":`, h.Key)
	dst = appendNumber(dst, `,"attempts":`, int64(h.Attempts))
	dst = appendField(dst, `,"lane":`, h.Lane)
	dst = appendField(dst, `,"model":`, h.Model)
	if h.Simulated {
		dst = append(dst, `,"simulated":true`...)
	}
	dst = appendUsage(dst, h.Usage)
	dst = appendCost(dst, h.CostUSD)
	dst = appendNumber(dst, `,"queued_ms":`, h.QueuedMS)
	dst = appendNumber(dst, `,"waited_ms":`, h.WaitedMS)
	dst = appendNumber(dst, `,"latency_ms":`, h.LatencyMS)
	if h.Metadata != nil {
		dst = appendJSON(append(dst, `,"metadata":`...), h.Metadata, false)
	}
	return dst // the sum closes it
}

func appendUsage(dst []byte, u Usage) []byte {
	dst = appendNumber(dst, `,"usage":{"input_tokens":`, u.InputTokens)
	dst = appendNumber(dst, `,"output_tokens":`, u.OutputTokens)
	dst = appendNumber(dst, `,"cached_tokens":`, u.CachedTokens)
	return append(dst, '}')
}

// appendCost writes plain decimals, never an exponent: people and spreadsheets
// read this field. What is no number is not known.
func appendCost(dst []byte, cost *float64) []byte {
	if cost == nil || math.IsNaN(*cost) || math.IsInf(*cost, 0) {
		return dst
	}
	return strconv.AppendFloat(append(dst, `,"cost_usd":`...), *cost, 'f', -1, 64)
}
