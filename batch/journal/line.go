package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/headrace/headrace/provider/rawjson"
)

// Line is one line of a result or errors file, in the form of OpenAI's offline batches with
// one more field. encoding/json reads what AppendLine writes.
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
	// Body holds the bytes that the provider sent: JSON as it came, on one line. Anything
	// else is written as a JSON string, and an empty body as null.
	Body json.RawMessage `json:"body"`
	// Checked says that Body is known to be valid JSON, so that it is not parsed again.
	// Line breaks and bad UTF-8 in it do no harm; a body that is not JSON spoils the file.
	Checked bool `json:"-"`
}

// Failure says why an item failed.
type Failure struct {
	Code    string `json:"code"` // the kind of failure
	Message string `json:"message"`
}

// CallFailure says how one call of an item ended, or several in a row that ended alike.
type CallFailure struct {
	Kind    string `json:"kind"`
	Status  int    `json:"status,omitempty"` // 0: there was no answer
	Message string `json:"message"`
	Calls   int    `json:"calls"`
}

// Headrace holds the fields that this program adds: how the answer was obtained.
type Headrace struct {
	Line     int    `json:"line"` // in the input, from 1; numbers go on from file to file
	Key      string `json:"key"`  // identifies the question, 32 hex digits
	Attempts int    `json:"attempts"`
	Lane     string `json:"lane"`
	Model    string `json:"model"`
	// Simulated says that no provider was called: the answer is made up.
	Simulated bool `json:"simulated,omitempty"`
	// These fields say who answered, and how it was asked. They are the provider's name,
	// the dialect of the body, the called model if it is not Model, and whether the
	// request was translated. "" and false are not written: each run chooses what its
	// lines tell.
	Provider   string `json:"provider,omitempty"`
	Dialect    string `json:"dialect,omitempty"`
	Served     string `json:"served,omitempty"`
	Translated bool   `json:"translated,omitempty"`
	// Fallback says that the pool prefers other lanes to the one that answered; false is not
	// written.
	Fallback bool `json:"fallback,omitempty"`
	// Finish says why the answer ended, in a word common to all dialects; "" is not
	// written.
	Finish string `json:"finish,omitempty"`
	Usage  Usage  `json:"usage"`
	// Doubtful counts calls whose answer was cut off: the provider may bill them in
	// addition to Usage. Zero is not written.
	Doubtful Doubtful `json:"doubtful,omitzero"`
	// CostUSD is nil if the cost is unknown: an unknown cost is never 0.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// CostSource says where the cost is from; "" is not written, nor is it without a cost.
	CostSource string `json:"cost_source,omitempty"`
	// Earlier holds what earlier tries of the item have cost, in runs whose lines this one
	// replaces; nil is not written.
	Earlier *Earlier `json:"earlier,omitempty"`
	// These fields say where the time went, in milliseconds: before the first call, between
	// calls, and in the call that ended the item.
	QueuedMS  int64 `json:"queued_ms"`
	WaitedMS  int64 `json:"waited_ms"`
	LatencyMS int64 `json:"latency_ms"`
	// Filtered says that a content filter has cut the answer short or emptied it; false is not
	// written.
	Filtered bool `json:"filtered,omitempty"`
	// Calls counts the calls of an item that failed, and Failures says how they ended.
	// Neither is written for a result.
	Calls    int           `json:"calls,omitempty"`
	Failures []CallFailure `json:"failures,omitempty"`
	// File and FileLine say where an item stands in an input of several files. For a single
	// file they are not written.
	File     string `json:"file,omitempty"`
	FileLine int    `json:"file_line,omitempty"`
	// Output names the output of an item that failed, as [OutputName] does: several outputs
	// may share one errors file. "" is not written.
	Output   string          `json:"output,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // the input line's own
	// Text is the text of the answer; nil is not written. A text that could make the line
	// longer than MaxJournalLine is left out: the body has it.
	Text *string `json:"text,omitempty"`
	// Sum guards the line: 8 hex digits, the CRC-32C of all its bytes before `,"sum"`.
	// AppendLine computes it and ignores the value here.
	Sum string `json:"sum"`
}

// Usage counts tokens as the provider billed them.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	CachedTokens int64 `json:"cached_tokens"` // part of InputTokens

	// Zeros of these are not written:
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"` // part of InputTokens
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"`   // part of OutputTokens
}

// Doubtful counts calls that were sent and whose answer was cut off, with the tokens that
// these answers reported before. If they reported none, no tokens are written. USD is the most
// that the calls may cost, if the run has a budget; 0 is not written.
type Doubtful struct {
	Calls int64   `json:"calls"`
	USD   float64 `json:"at_most_usd,omitempty"`
	Usage
}

// Earlier is a cost from before the run that wrote the line.
type Earlier struct {
	CostUSD  float64  `json:"cost_usd"`          // as far as it is known
	Unpriced int64    `json:"unpriced,omitzero"` // tries of unknown cost
	Doubtful Doubtful `json:"doubtful,omitzero"`
}

// Add adds a further cost.
func (e *Earlier) Add(of Earlier) {
	e.CostUSD += of.CostUSD
	e.Unpriced += of.Unpriced
	e.Doubtful.Add(of.Doubtful)
}

// Add adds the counts of e.
func (d *Doubtful) Add(e Doubtful) {
	d.Calls += e.Calls
	d.USD += e.USD
	d.Usage.add(e.Usage)
}

// add adds the counts of v.
func (u *Usage) add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CachedTokens += v.CachedTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ReasoningTokens += v.ReasoningTokens
}

// idDigits is the length of the key's part in a line's id: 24 hex digits, 96 bits. The
// ids in OpenAI's own result files are as long.
const idDigits = 24

// LineOf begins the line of an item, with the fields of h that are known before its call.
func LineOf(customID string, h Headrace) Line {
	return Line{ID: resultID(h.Key), CustomID: customID, Headrace: h}
}

// resultID returns the id of the output line of an item with this key.
func resultID(key string) string { return "hr-" + key[:min(idDigits, len(key))] }

// AppendLine appends l and a line feed to dst. The result is one line of valid JSON and
// valid UTF-8, whatever l holds.
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

// appendResponse appends the response, or null if the provider never answered.
func appendResponse(dst []byte, r *Response) []byte {
	if r == nil {
		return append(dst, `,"response":null`...)
	}
	dst = appendNumber(dst, `,"response":{"status_code":`, int64(r.StatusCode))
	dst = appendField(dst, `,"request_id":`, r.RequestID)
	dst = appendJSON(append(dst, `,"body":`...), r.Body, r.Checked)
	return append(dst, '}')
}

// appendFailure appends the reason why the item failed, or null for a result.
func appendFailure(dst []byte, f *Failure) []byte {
	if f == nil {
		return append(dst, `,"error":null`...)
	}
	dst = appendField(dst, `,"error":{"code":`, f.Code)
	dst = appendField(dst, `,"message":`, f.Message)
	return append(dst, '}')
}

// appendHeadrace writes the last member of a line, and leaves it open: the text may follow, and
// the sum closes it. Rare fields are left out where they are zero.
func appendHeadrace(dst []byte, h *Headrace) []byte {
	dst = appendNumber(dst, `,"headrace":{"line":`, int64(h.Line))
	dst = appendField(dst, `,"key":`, h.Key)
	dst = appendNumber(dst, `,"attempts":`, int64(h.Attempts))
	dst = appendField(dst, `,"lane":`, h.Lane)
	dst = appendField(dst, `,"model":`, h.Model)
	if h.Simulated {
		dst = append(dst, `,"simulated":true`...)
	}
	dst = appendIfSet(dst, `,"provider":`, h.Provider)
	dst = appendIfSet(dst, `,"dialect":`, h.Dialect)
	dst = appendIfSet(dst, `,"served":`, h.Served)
	if h.Translated {
		dst = append(dst, `,"translated":true`...)
	}
	if h.Fallback {
		dst = append(dst, `,"fallback":true`...)
	}
	dst = appendIfSet(dst, `,"finish":`, h.Finish)
	dst = append(appendTokens(append(dst, `,"usage":{`...), h.Usage), '}')
	dst = appendDoubtful(dst, h.Doubtful)
	dst = appendCost(dst, h.CostUSD, h.CostSource)
	dst = appendEarlier(dst, h.Earlier)
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
	dst = appendIfSet(dst, `,"output":`, h.Output)
	if h.Metadata != nil {
		dst = appendJSON(append(dst, `,"metadata":`...), h.Metadata, false)
	}
	return dst
}

// appendFailures writes how the calls of a failed item ended.
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

// appendIfSet appends a field, unless its value is "".
func appendIfSet(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendField(dst, name, value)
}

const (
	// escapedByte is the most that a byte of a text takes in JSON: \u0000.
	escapedByte = 6
	// aroundText is the room for the rest of a line, apart from its text and the part
	// before it: the name, the quotes and the sum.
	aroundText = 64
)

// appendText writes a text behind a line's other n bytes, if the line can still be read
// back.
func appendText(dst []byte, n int, text *string) []byte {
	if text == nil || !textFits(n, len(*text)) {
		return dst
	}
	return appendField(dst, `,"text":`, *text)
}

// textFits reports whether a text of so many bytes keeps a line of so many other bytes within MaxJournalLine.
func textFits(line, text int) bool {
	return text <= (MaxJournalLine-aroundText-line)/escapedByte
}

// appendTokens writes the members of a usage, without braces around them. The last two are rare,
// and left out where they are zero.
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

// appendDoubtful writes the calls that may be billed, if there are any.
func appendDoubtful(dst []byte, d Doubtful) []byte {
	if d.Calls == 0 {
		return dst
	}
	dst = appendNumber(dst, `,"doubtful":{"calls":`, d.Calls)
	if d.USD > 0 && !math.IsInf(d.USD, 0) {
		dst = strconv.AppendFloat(append(dst, `,"at_most_usd":`...), d.USD, 'f', -1, 64)
	}
	if d.Usage != (Usage{}) {
		dst = appendTokens(append(dst, ','), d.Usage)
	}
	return append(dst, '}')
}

// appendCost writes plain decimals, never an exponent: people and spreadsheets read this
// field. A cost that is not a number is unknown.
func appendCost(dst []byte, cost *float64, source string) []byte {
	if cost == nil || math.IsNaN(*cost) || math.IsInf(*cost, 0) {
		return dst
	}
	dst = strconv.AppendFloat(append(dst, `,"cost_usd":`...), *cost, 'f', -1, 64)
	return appendIfSet(dst, `,"cost_source":`, source)
}

// appendEarlier writes the cost of earlier tries, if there is any.
func appendEarlier(dst []byte, e *Earlier) []byte {
	if e == nil || math.IsNaN(e.CostUSD) || math.IsInf(e.CostUSD, 0) {
		return dst
	}
	dst = strconv.AppendFloat(append(dst, `,"earlier":{"cost_usd":`...), e.CostUSD, 'f', -1, 64)
	if e.Unpriced > 0 {
		dst = appendNumber(dst, `,"unpriced":`, e.Unpriced)
	}
	return append(appendDoubtful(dst, e.Doubtful), '}')
}

// A line ends in its sum. CRC-32C finds every flipped bit, every run of damage up to 32
// bits long, and all but one in four billion of the rest. Processors have an instruction
// for it, so it costs less than reading the line.
const (
	sumBegins = `,"sum":"`
	sumEnds   = "\"}}\n"
	sumDigits = 8
	sumLength = len(sumBegins) + sumDigits + len(sumEnds)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendSum appends the sum of the bytes in line, the line so far.
func appendSum(dst, line []byte) []byte {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(line, castagnoli))
	dst = hex.AppendEncode(append(dst, sumBegins...), sum[:])
	return append(dst, '"')
}

// sumHolds reports whether a line, line feed included, is as it was written.
func sumHolds(line []byte) bool {
	if len(line) < sumLength {
		return false
	}
	var buffer [sumLength]byte
	body := line[:len(line)-sumLength]
	want := append(appendSum(buffer[:0], body), sumEnds[1:]...)
	return string(want) == string(line[len(body):])
}

// aroundBody is the depth of a body in its line: in the line and in its response. Metadata
// stand as deep: in the line and in what headrace adds.
const aroundBody = 2

// appendJSON appends a body on one line. Valid JSON stays as it came; if it had line breaks, it loses the white
// space around its values. Anything else becomes a string, and so does JSON that would nest the line too deep to be
// read back. isJSON says that the body is known to be JSON: only what valid JSON may still lack is then checked.
func appendJSON(dst, body []byte, isJSON bool) []byte {
	if body = rawjson.Trim(body); len(body) == 0 {
		return append(dst, "null"...)
	}
	hasBreaks, isASCII := bytes.IndexByte(body, '\n') >= 0 || bytes.IndexByte(body, '\r') >= 0, false
	if !isJSON || mayBeDeep(body) {
		p := rawjson.Parser{Skim: true, Around: aroundBody}
		if !p.Parse(body) {
			return rawjson.AppendString(dst, string(body))
		}
		isASCII = p.ASCII()
	}
	if !isASCII && !utf8.Valid(body) {
		body = []byte(string([]rune(string(body)))) // each bad byte becomes U+FFFD, as JSON decoders do it
	}
	if !hasBreaks {
		return append(dst, body...)
	}
	return appendCompact(dst, body)
}

// mayBeDeep reports whether a body has enough brackets to nest too deep in its line. It is
// quick: nearly all bodies have fewer bytes than that.
func mayBeDeep(body []byte) bool {
	const most = rawjson.MaxNesting - aroundBody
	return len(body) > 2*most && bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) > most
}

// appendCompact appends valid JSON without white space.
func appendCompact(dst, body []byte) []byte {
	for i := rawjson.SkipSpace(body, 0); i < len(body); i = rawjson.SkipSpace(body, i) {
		end := i + 1
		switch body[i] {
		case '"':
			end = rawjson.SkipString(body, i)
		case '{', '}', '[', ']', ',', ':':
		default:
			end = max(end, rawjson.SkipScalar(body, i)) // it advances whatever stands there
		}
		dst = append(dst, body[i:end]...)
		i = end
	}
	return dst
}
