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

// CallFailure is how one call of an item ended, or some in a row that ended alike.
type CallFailure struct {
	Kind    string `json:"kind"`
	Status  int    `json:"status,omitempty"` // 0: there was no answer
	Message string `json:"message"`
	Calls   int    `json:"calls"`
}

// Headrace is what this program adds: how the answer was come by.
type Headrace struct {
	Line     int    `json:"line"` // in the input, from 1; the lines of several files are numbered on
	Key      string `json:"key"`  // what was asked, 32 hex digits
	Attempts int    `json:"attempts"`
	Lane     string `json:"lane"`
	Model    string `json:"model"`
	// Simulated says that no provider was asked: the answer is made up.
	Simulated bool `json:"simulated,omitempty"`
	// Who answered, and how it was asked: the provider's name, the dialect that the body is
	// in, the model that was asked if it is not Model, and whether the request was put into
	// other words. "" and false are not written: what a run tells of them is its own choice.
	Provider   string `json:"provider,omitempty"`
	Dialect    string `json:"dialect,omitempty"`
	Served     string `json:"served,omitempty"`
	Translated bool   `json:"translated,omitempty"`
	// Finish is why the answer ended, in a word that holds for all dialects; "" is not written.
	Finish string `json:"finish,omitempty"`
	Usage  Usage  `json:"usage"`
	// Doubtful is what the provider may bill in addition to Usage: calls whose answer was cut off. Without
	// any it is not written.
	Doubtful Doubtful `json:"doubtful,omitzero"`
	// CostUSD is nil when it is not known: an unknown cost is never 0.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// Where the time went, in milliseconds: before the first call, between calls,
	// and in the call that ended the item.
	QueuedMS  int64 `json:"queued_ms"`
	WaitedMS  int64 `json:"waited_ms"`
	LatencyMS int64 `json:"latency_ms"`
	// Filtered says that a content filter has cut the answer short or emptied it; false is not
	// written.
	Filtered bool `json:"filtered,omitempty"`
	// Calls is how many an item had that failed, and Failures how they ended; neither is
	// written of a result.
	Calls    int           `json:"calls,omitempty"`
	Failures []CallFailure `json:"failures,omitempty"`
	// File and FileLine are where an item stands in an input of several files; of one file they
	// are not written.
	File     string `json:"file,omitempty"`
	FileLine int    `json:"file_line,omitempty"`
	// Output is the output of an item that failed, as [OutputName] names it: several outputs may
	// share one errors file. "" is not written.
	Output   string          `json:"output,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // the input line's own
	// Text is what the answer says in words; nil is not written. A text with which the line
	// could become longer than MaxJournalLine is left out: the body has it.
	Text *string `json:"text,omitempty"`
	// Sum guards the line: 8 hex digits, the CRC-32C of all its bytes before
	// `,"sum"`. AppendLine makes it, whatever stands here.
	Sum string `json:"sum"`
}

// Usage counts tokens as the provider billed them.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	CachedTokens int64 `json:"cached_tokens"` // part of InputTokens

	// Not written where they are 0:
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"` // part of InputTokens
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"`   // part of OutputTokens
}

// Doubtful counts calls that were sent and whose answer was cut off, with the tokens that these
// answers had told before. Where none was told, none is written.
type Doubtful struct {
	Calls int64 `json:"calls"`
	Usage
}

// Add adds what e counts.
func (d *Doubtful) Add(e Doubtful) {
	d.Calls += e.Calls
	d.Usage.add(e.Usage)
}

// add adds what v counts.
func (u *Usage) add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CachedTokens += v.CachedTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ReasoningTokens += v.ReasoningTokens
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
	dst = appendText(dst, len(dst)-start, l.Headrace.Text)
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
	dst = appendOrigin(dst, h)
	dst = appendUsage(dst, h.Usage)
	dst = appendDoubtful(dst, h.Doubtful)
	dst = appendCost(dst, h.CostUSD)
	dst = appendNumber(dst, `,"queued_ms":`, h.QueuedMS)
	dst = appendNumber(dst, `,"waited_ms":`, h.WaitedMS)
	dst = appendNumber(dst, `,"latency_ms":`, h.LatencyMS)
	if h.Filtered {
		dst = append(dst, `,"filtered":true`...)
	}
	dst = appendFailures(dst, h)
	if h.File != "" {
		dst = appendNumber(appendField(dst, `,"file":`, h.File), `,"file_line":`, int64(h.FileLine))
	}
	dst = appendKnown(dst, `,"output":`, h.Output)
	if h.Metadata != nil {
		dst = appendJSON(append(dst, `,"metadata":`...), h.Metadata, false)
	}
	return dst // the text may follow, and the sum closes it
}

// appendFailures writes how the calls ended of an item that failed.
func appendFailures(dst []byte, h *Headrace) []byte {
	if h.Calls > 0 {
		dst = appendNumber(dst, `,"calls":`, int64(h.Calls))
	}
	for i := range h.Failures {
		f, before := &h.Failures[i], `,{"kind":`
		if i == 0 {
			before = `,"failures":[{"kind":`
		}
		dst = appendField(dst, before, f.Kind)
		if f.Status != 0 {
			dst = appendNumber(dst, `,"status":`, int64(f.Status))
		}
		dst = appendField(dst, `,"message":`, f.Message)
		dst = append(appendNumber(dst, `,"calls":`, int64(f.Calls)), '}')
	}
	if len(h.Failures) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// appendOrigin writes what runs at providers of several kinds tell.
func appendOrigin(dst []byte, h *Headrace) []byte {
	dst = appendKnown(dst, `,"provider":`, h.Provider)
	dst = appendKnown(dst, `,"dialect":`, h.Dialect)
	dst = appendKnown(dst, `,"served":`, h.Served)
	if h.Translated {
		dst = append(dst, `,"translated":true`...)
	}
	return appendKnown(dst, `,"finish":`, h.Finish)
}

func appendKnown(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendField(dst, name, value)
}

const (
	// escapedByte is what a byte of a text takes at most in JSON: \u0000.
	escapedByte = 6
	// aroundText is what a line has beside its text and what stands before it: the name, the
	// quotes and the sum.
	aroundText = 64
)

// appendText writes a text behind a line's other n bytes, if the line can be read back then.
func appendText(dst []byte, n int, text *string) []byte {
	if text == nil || !textFits(n, len(*text)) {
		return dst
	}
	return appendField(dst, `,"text":`, *text)
}

func textFits(line, text int) bool {
	return text <= (MaxJournalLine-aroundText-line)/escapedByte
}

func appendUsage(dst []byte, u Usage) []byte {
	return append(appendTokens(append(dst, `,"usage":{`...), u), '}')
}

func appendTokens(dst []byte, u Usage) []byte {
	dst = appendNumber(dst, `"input_tokens":`, u.InputTokens)
	dst = appendNumber(dst, `,"output_tokens":`, u.OutputTokens)
	dst = appendNumber(dst, `,"cached_tokens":`, u.CachedTokens)
	if u.CacheWriteTokens != 0 {
		dst = appendNumber(dst, `,"cache_write_tokens":`, u.CacheWriteTokens)
	}
	if u.ReasoningTokens != 0 {
		dst = appendNumber(dst, `,"reasoning_tokens":`, u.ReasoningTokens)
	}
	return dst
}

// appendDoubtful writes what may be billed, if there is anything.
func appendDoubtful(dst []byte, d Doubtful) []byte {
	if d.Calls == 0 {
		return dst
	}
	dst = appendNumber(dst, `,"doubtful":{"calls":`, d.Calls)
	if d.Usage != (Usage{}) {
		dst = appendTokens(append(dst, ','), d.Usage)
	}
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
