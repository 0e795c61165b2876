package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/internal/must"
)

func full() Line {
	cost := 0.000012
	return Line{
		ID: "hr-1", CustomID: "a",
		Response: &Response{StatusCode: 200, RequestID: "req_1", Body: json.RawMessage(`{"choices":[]}`)},
		Headrace: Headrace{
			Line: 42, Key: "k", Attempts: 2, Lane: "sim/gpt", Model: "gpt",
			Usage:   Usage{InputTokens: 9, OutputTokens: 12, CachedTokens: 3},
			CostUSD: &cost, WaitedMS: 1200, LatencyMS: 830, QueuedMS: 1,
			Metadata: json.RawMessage(`{"k":"v"}`),
		},
	}
}

// A result line is, to the byte, what the documentation of output lines shows, but
// for its sum.
func TestAppendLineOfSuccess(t *testing.T) {
	l := full()
	const want = `{"id":"hr-1","custom_id":"a","response":{"status_code":200,"request_id":"req_1","body":{"choices":[]}},` +
		`"error":null,"headrace":{"line":42,"key":"k","attempts":2,"lane":"sim/gpt","model":"gpt",` +
		`"usage":{"input_tokens":9,"output_tokens":12,"cached_tokens":3},"cost_usd":0.000012,` +
		`"queued_ms":1,"waited_ms":1200,"latency_ms":830,"metadata":{"k":"v"}}}` + "\n"
	if got := unsummed(string(AppendLine([]byte("x"), &l))); got != "x"+want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A line that was simulated says so, and is read back so; any other says nothing of it.
func TestAppendLineOfSimulated(t *testing.T) {
	l := full()
	plain := string(AppendLine(nil, &l))
	l.Headrace.Simulated = true
	text := AppendLine(nil, &l)
	if !strings.Contains(string(text), `"model":"gpt","simulated":true,"usage"`) || strings.Contains(plain, "simulated") {
		t.Errorf("%s%s", plain, text)
	}
	var back Line
	if err := json.Unmarshal(text, &back); err != nil || !back.Headrace.Simulated {
		t.Errorf("%+v, %v", back, err)
	}
}

// native is a line that tells all that a line can.
func native() Line {
	l, text := full(), "a \"word\"\n\u2028\x01"
	h := &l.Headrace
	h.Provider, h.Dialect, h.Served, h.Translated, h.Finish, h.Text = "anthropic", "anthropic", "claude-haiku-5", true, "stop", &text
	h.Usage.CacheWriteTokens, h.Usage.ReasoningTokens = 4, 5
	h.Doubtful = Doubtful{Calls: 2, USD: 0.5, Usage: Usage{InputTokens: 6, OutputTokens: 7, CachedTokens: 1, CacheWriteTokens: 2, ReasoningTokens: 3}}
	h.File, h.FileLine = "part-2.jsonl", 7
	return l
}

// A line tells who has answered, how the answer ended and what it says, where a run knows it;
// encoding/json reads it back.
func TestAppendLineOfAnotherDialect(t *testing.T) {
	l := native()
	text := AppendLine(nil, &l)
	const want = `"model":"gpt","provider":"anthropic","dialect":"anthropic","served":"claude-haiku-5","translated":true,"finish":"stop",` +
		`"usage":{"input_tokens":9,"output_tokens":12,"cached_tokens":3,"cache_write_tokens":4,"reasoning_tokens":5},` +
		`"doubtful":{"calls":2,"at_most_usd":0.5,"input_tokens":6,"output_tokens":7,"cached_tokens":1,"cache_write_tokens":2,"reasoning_tokens":3},"cost_usd":0.000012,` +
		`"queued_ms":1,"waited_ms":1200,"latency_ms":830,"file":"part-2.jsonl","file_line":7,"metadata":{"k":"v"},"text":"a \"word\"\n\u2028\u0001"}}` + "\n"
	if got := unsummed(string(text)); !strings.HasSuffix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back Line
	must.Do(t, json.Unmarshal(text, &back))
	if back.Headrace.Sum = ""; !reflect.DeepEqual(back, l) {
		t.Errorf("read back as %+v, %s", back, *back.Headrace.Text)
	}
	l.Headrace.Doubtful = Doubtful{Calls: 1}
	if got := string(AppendLine(nil, &l)); !strings.Contains(got, `"reasoning_tokens":5},"doubtful":{"calls":1},"cost_usd"`) {
		t.Errorf("of a call that told nothing: %s", got)
	}
	l.Headrace.Doubtful = Doubtful{}
	if got := string(AppendLine(nil, &l)); strings.Contains(got, "doubtful") {
		t.Errorf("without any: %s", got)
	}
	empty := ""
	if l.Headrace.Text = &empty; !strings.Contains(string(AppendLine(nil, &l)), `,"text":"",`) {
		t.Error("an answer that says nothing is not told from one without a text")
	}
}

// No text makes a line longer than what is read back: it is left out then.
func TestTextsFitIntoLines(t *testing.T) {
	for _, c := range []struct {
		line, text int
		fits       bool
	}{
		{1000, 0, true},
		{64 << 20, 64 << 20, true},
		{MaxJournalLine / 2, MaxJournalLine / 12, false},
		{MaxJournalLine/2 - 2*aroundText, MaxJournalLine / 12, true},
		{MaxJournalLine, 0, false},
		{2 * MaxJournalLine, 0, false},
	} {
		if textFits(c.line, c.text) != c.fits {
			t.Errorf("%d bytes of text behind %d: not %t", c.text, c.line, c.fits)
		}
	}
	text := strings.Repeat("\x01", 1000)
	most := MaxJournalLine - aroundText - escapedByte*len(text)
	if all := most + len(appendText(nil, most, &text)) + sumLength; all > MaxJournalLine || all < MaxJournalLine-aroundText {
		t.Errorf("a line of %d bytes, of %d that may be", all, MaxJournalLine)
	}
	if got := appendText(nil, most+1, &text); got != nil {
		t.Errorf("a text that could be too long is written: %d bytes", len(got))
	}
}

// What a line tells more costs no allocation.
func TestAppendLineAllocatesNothing(t *testing.T) {
	l := native()
	room := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { room = AppendLine(room[:0], &l) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A failed item that was never answered has no response; an unknown cost and no
// metadata are left out.
func TestAppendLineOfFailure(t *testing.T) {
	l := Line{ID: "hr-2", CustomID: "b", Error: &Failure{Code: "timeout", Message: "no answer\nin 2m"}}
	const want = `{"id":"hr-2","custom_id":"b","response":null,"error":{"code":"timeout","message":"no answer\nin 2m"},` +
		`"headrace":{"line":0,"key":"","attempts":0,"lane":"","model":"",` +
		`"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0},"queued_ms":0,"waited_ms":0,"latency_ms":0}}` + "\n"
	if got := unsummed(string(AppendLine(nil, &l))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, unknown := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		l.Headrace.CostUSD = &unknown
		if got := unsummed(string(AppendLine(nil, &l))); got != want {
			t.Errorf("a cost of %v: %s", unknown, got)
		}
	}
}

// A body goes into the line as it came; what would break the line or its JSON is
// tamed and nothing else.
func TestBodiesInLines(t *testing.T) {
	tests := []struct{ body, want string }{
		{`{"a": 1.50, "b":"\u00e9"}`, `{"a": 1.50, "b":"\u00e9"}`},
		{"{\n  \"a\": [1, 2],\r\n  \"b c\": \"x \\n\\\"}\",\n  \"d\": {}\n}\n", `{"a":[1,2],"b c":"x \n\"}","d":{}}`},
		{"{\"a\" :\r1}", `{"a":1}`},
		{"[ true ,\nnull , -1e5 ]", `[true,null,-1e5]`},
		{"", "null"},
		{" \n", "null"},
		{"<html>\n\"502\"\x00</html>", `"<html>\n\"502\"\u0000</html>"`},
		{`{"cut":"sho`, `"{\"cut\":\"sho"`},
		{"bad\xff", `"bad` + "\uFFFD" + `"`},
		{"{\"a\":\"bad\xff\"}", `{"a":"bad` + "\uFFFD" + `"}`},
		{"a\u2028b\u2029c", `"a\u2028b\u2029c"`},
		{strings.Repeat("[", 20000), `"` + strings.Repeat("[", 20000) + `"`},
	}
	for _, tt := range tests {
		for _, known := range []bool{false, json.Valid([]byte(tt.body))} {
			if got := string(appendJSON(nil, []byte(tt.body), known)); got != tt.want {
				t.Errorf("%q, known %t: got %s, want %s", lines.Clip(tt.body), known, lines.Clip(got), lines.Clip(tt.want))
			}
		}
	}
}

// The line of an item has an id that is made of its key.
func TestLineOf(t *testing.T) {
	h := Headrace{Line: 3, Key: "0123456789abcdef0123456789abcdef", Model: "m", Metadata: json.RawMessage(`{}`)}
	want := Line{ID: "hr-0123456789abcdef01234567", CustomID: "a", Headrace: h}
	if got := LineOf("a", h); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := LineOf("a", Headrace{}); got.ID != "hr-" {
		t.Errorf("a line without key gets id %q", got.ID)
	}
}

// savedLine is the line of item n, as a run makes it.
func savedLine(n int) Line {
	id := fmt.Sprintf("item-%d", n)
	l := LineOf(id, Headrace{Line: n, Model: "m", Key: keyOf(id)})
	l.Response = &Response{StatusCode: 200, Body: []byte(`{"n":1}`)}
	return l
}

// FuzzAppendLine: any strings and bodies give one line of UTF-8 that encoding/json
// reads back as what was written.
func FuzzAppendLine(f *testing.F) {
	f.Add("a\"\\\n\u2028", []byte("{\n\"a\" : [1, {\"b\":\"\\\"\"}]}"), 0.5, int64(3))
	f.Add("\x00\x7f\xff\U0001F600", []byte("<html>\xff"), 1e-12, int64(-1))
	f.Add("0", []byte("\"\xc1\xc1\""), 74.5, int64(3))
	f.Add("", []byte(nil), 0.0, int64(1)<<62)
	f.Fuzz(func(t *testing.T, s string, body []byte, cost float64, n int64) {
		l := Line{
			ID: s, CustomID: s, Response: &Response{StatusCode: int(n), RequestID: s, Body: body}, Error: &Failure{Code: s, Message: s},
			Headrace: Headrace{
				Lane: s, Provider: s, Dialect: s, Served: s, Finish: s, Usage: Usage{InputTokens: n, ReasoningTokens: n},
				CostUSD: &cost, LatencyMS: n, Metadata: body, Text: &s,
			},
		}
		text := AppendLine(nil, &l)
		if l.Response.Checked = json.Valid(body); string(AppendLine(nil, &l)) != string(text) {
			t.Fatalf("that the body is known makes another line of %q", text)
		}
		if !utf8.Valid(text) || bytes.IndexByte(text, '\n') != len(text)-1 || bytes.IndexByte(text, '\r') >= 0 {
			t.Fatalf("not one line: %q", text)
		}
		var got Line
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		checkSame(t, "id", got.ID, readable(l.ID))
		checkSame(t, "message", got.Error.Message, readable(l.ID))
		checkSame(t, "request id", got.Response.RequestID, readable(l.ID))
		checkSame(t, "input tokens", got.Headrace.Usage.InputTokens, n)
		checkSame(t, "reasoning tokens", got.Headrace.Usage.ReasoningTokens, n)
		checkSame(t, "provider", got.Headrace.Provider, readable(s))
		checkSame(t, "text", *got.Headrace.Text, readable(s))
		if !math.IsNaN(cost) && !math.IsInf(cost, 0) {
			checkSame(t, "cost", *got.Headrace.CostUSD, cost)
		}
		checkSame(t, "body", canonicalBody(t, got.Response.Body), canonicalBody(t, body))
	})
}

// readable replaces each byte that is no UTF-8, as encoding/json would.
func readable(s string) string { return string([]rune(s)) }

// canonicalBody is the meaning of a body: its JSON in compact form, or its text.
func canonicalBody(t *testing.T, body []byte) string {
	t.Helper()
	var text string
	if json.Unmarshal(body, &text) == nil {
		return text
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		return readable(compact.String())
	}
	return readable(strings.Trim(string(body), " \t\r\n"))
}

func checkSame[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A body that is said to be JSON and is not ends all the same.
func TestWrongWordForABodyEnds(t *testing.T) {
	for _, body := range []string{"{}\n\f", "\f\n{}", "[\n\x01]"} {
		l := Line{Response: &Response{Body: []byte(body), Checked: true}}
		if got := AppendLine(nil, &l); len(got) == 0 {
			t.Errorf("%q gave nothing", body)
		}
	}
}

// unsummed is a line as AppendLine wrote it, without its sum.
func unsummed(line string) string {
	at := strings.LastIndex(line, sumBegins)
	return line[:at] + line[at+len(sumBegins)+sumDigits+1:]
}

// The sum is what anyone can compute: CRC-32C of the bytes before it.
func TestSumIsCRC32C(t *testing.T) {
	line := journalLine("a", "")
	at := strings.LastIndex(line, `,"sum":"`)
	want := fmt.Sprintf("%08x", crc32.Checksum([]byte(line[:at]), crc32.MakeTable(crc32.Castagnoli)))
	if line[at:] != `,"sum":"`+want+"\"}}\n" {
		t.Errorf("the line ends in %q, want %s", line[at:], want)
	}
}

// A line that is appended to others has a sum of its own bytes alone.
func TestSumIsOfOneLine(t *testing.T) {
	l := savedLine(1)
	both := AppendLine(AppendLine(nil, &l), &l)
	if !sumHolds(both[len(both)/2:]) || sumHolds(both) || sumHolds(nil) {
		t.Error("a sum holds for what it should not, or the reverse")
	}
}

// nativeLine returns a line of item n with every field set; its text looks like lines and
// sums.
func nativeLine(n int) Line {
	l, plain := native(), savedLine(n)
	text := string(AppendLine(nil, &plain)) + `{"id":"hr-000000000000000000000000","custom_id":"x"},"sum":"00000000"}}`
	l.ID, l.CustomID, l.Headrace.Key, l.Headrace.Line, l.Headrace.Text = plain.ID, plain.CustomID, plain.Headrace.Key, n, &text
	return l
}

// Lines that tell of other dialects are read as any other: gone on with, summed up, and, of
// a damaged file, kept as they were. Both sorts stand in one file.
func TestLinesOfOtherDialectsAreReadBack(t *testing.T) {
	plain, native, last := savedLine(1), nativeLine(2), nativeLine(3)
	last.Headrace.Text = nil
	file := string(AppendLine(nil, &plain)) + string(AppendLine(nil, &native)) + string(AppendLine(nil, &last))
	j, err := ReadJournal(writeFile(t, file))
	if err != nil || j.Lines != 3 || j.Keys.Len() != 3 || j.Repeated != 0 || !j.Keys.Has(native.Headrace.Key) {
		t.Fatalf("%+v, %v", j, err)
	}
	p, err := ReadProgress(writeFile(t, file), "none")
	if err != nil || p.Done != 3 || p.Usage.InputTokens != 18 || p.Usage.CacheWriteTokens != 8 || p.Usage.ReasoningTokens != 10 || p.Priced != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	path := writeFile(t, strings.Replace(file, `"custom_id":"item-1"`, `"custom_id":"item-7"`, 1))
	r, err := Repair(path)
	if want := file[strings.Index(file, "\n")+1:]; err != nil || r.Kept != 2 || len(r.Dropped) != 1 || textOf(t, path) != want {
		t.Errorf("%+v, %v:\n%s", r, err, textOf(t, path))
	}
	torn, err := ReadJournal(writeFile(t, file[:len(file)-100]))
	if err != nil || torn.Lines != 2 || torn.Torn == 0 {
		t.Errorf("%+v, %v", torn, err)
	}
}

// nested is a JSON value that nests so deep.
func nested(open, inner, closing string, deep int) string {
	return strings.Repeat(open, deep-1) + inner + strings.Repeat(closing, deep-1)
}

// A line can be read back however deep what is put into it nests. What stands in a line at
// all stays JSON up to the last level that a reader takes, and is a text beyond.
func TestNestingCountsTheLineAround(t *testing.T) {
	const key = "00112233445566778899aabbccddeeff"
	for _, checked := range []bool{true, false} {
		for text, isJSON := range map[string]bool{
			nested("[", "[]", "]", 9998): true, nested("[", "[]", "]", 9999): false, nested("[", "[]", "]", 10_000): false,
			nested(`{"a":`, "{}", "}", 9998): true, nested(`{"a":`, "{}", "}", 9999): false,
			nested("\n[", "[]", "]", 9999): false, nested("\n[", "[]", "]", 9998): true,
			`["` + strings.Repeat("[", 30_000) + `"]`: true, "[" + strings.Repeat("[],", 20_000) + "[]]": true,
		} {
			l := LineOf("a", Headrace{Line: 1, Key: key, Metadata: json.RawMessage(text)})
			l.Response = &Response{StatusCode: 200, Body: json.RawMessage(text), Checked: checked}
			line := AppendLine(nil, &l)
			var p Parser
			if sum, err := p.key(line, false); err != nil || sum.String() != key {
				t.Errorf("checked %t, %.20q of %d bytes: %v", checked, text, len(text), err)
			}
			var back Line
			if err := json.Unmarshal(line, &back); err != nil {
				t.Fatalf("checked %t, %.20q of %d bytes: %v", checked, text, len(text), err)
			}
			for _, got := range []json.RawMessage{back.Response.Body, back.Headrace.Metadata} {
				var whole string
				said := json.Unmarshal(got, &whole) == nil && whole == strings.TrimSpace(text)
				if want := strings.ReplaceAll(text, "\n", ""); isJSON && string(got) != want || !isJSON && !said {
					t.Errorf("checked %t, %.20q of %d bytes became %.20q of %d", checked, text, len(text), got, len(got))
				}
			}
		}
	}
}

// BenchmarkAppendLine: a line as it comes from a provider that indents its answers.
func BenchmarkAppendLine(b *testing.B) {
	l := full()
	words := strings.Repeat("the mill wheel turns as fast as the water lets it ", 20)
	for name, body := range map[string]string{
		"compact":  `{"choices":[{"index":0,"message":{"role":"assistant","content":"` + words + `"}}]}`,
		"indented": "{\n  \"choices\": [\n    {\n      \"index\": 0,\n      \"message\": {\n        \"content\": \"" + words + "\"\n      }\n    }\n  ]\n}",
	} {
		b.Run(name, func(b *testing.B) {
			l.Response.Body = []byte(body)
			dst := AppendLine(nil, &l)
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendLine(dst[:0], &l)
			}
		})
	}
}

// BenchmarkAnswerLine: a line as it comes from a provider that answers on one line,
// whose answer is parsed here or was parsed before.
func BenchmarkAnswerLine(b *testing.B) {
	l := savedLine(1)
	l.Response = &Response{StatusCode: 200, RequestID: "req_1", Body: []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench-1","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("which rivers does it cross ", 8) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":60,"completion_tokens":50,"total_tokens":110}}`)}
	l.Headrace.Lane = "openai/bench-1"
	dst := AppendLine(nil, &l)
	for name, checked := range map[string]bool{"unknown": false, "checked": true} {
		l.Response.Checked = checked
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendLine(dst[:0], &l)
			}
		})
	}
}
