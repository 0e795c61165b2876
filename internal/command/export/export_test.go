package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
)

// exported is the table of an output.
func exported(t *testing.T, path string, f flags) string {
	t.Helper()
	var out bytes.Buffer
	if f.fields == nil {
		f.fields = []string{"id", "text"}
	}
	must.Do(t, exportTo(&out, path, &f))
	return out.String()
}

// failedLine is the line of an item that failed.
func failedLine(n int, message string) *journal.Line {
	l := lineOf(n, "")
	l.Response, l.Error = nil, &journal.Failure{Code: "timeout", Message: message}
	return l
}

// withErrors writes an output and its errors file.
func withErrors(t *testing.T, results, failures []*journal.Line) string {
	t.Helper()
	path := output(t, results...)
	var text []byte
	for _, l := range failures {
		text = journal.AppendLine(text, l)
	}
	must.Do(t, os.WriteFile(journal.ErrorsPath(path), text, 0o600))
	return path
}

// odd are texts that tables are known to lose.
var odd = []string{
	"plain", "a,b", `say "hi"`, "two\nlines", "cr\rlf\r\n", "\ttab\t", "", " spaced ", "'quoted'", "null", "NULL", "=1+1", "-5", "0012", "1e5",
	"日本語 🦜 é", "\\n is no line feed", "\u2028", "back\\slash\\", "\"", "\"\"", ",", "a;b", "#c", "\x1b[31mred", strings.Repeat("long ", 50_000),
}

// Whatever a model says, a reader of CSV gets that text.
func TestCSVIsReadBack(t *testing.T) {
	var lines []*journal.Line
	for n, text := range odd {
		lines = append(lines, lineOf(n+1, fmt.Sprintf(chat, must.Get(json.Marshal(text))(t))))
	}
	path := output(t, lines...)
	for _, format := range formats[:2] {
		r := csv.NewReader(strings.NewReader(exported(t, path, flags{format: format})))
		if r.Comma = ','; format == "tsv" {
			r.Comma = '\t'
		}
		rows := must.Get(r.ReadAll())(t)
		if len(rows) != len(odd)+1 {
			t.Fatalf("%d rows", len(rows))
		}
		for n, text := range odd {
			// Go's reader makes a line feed of a carriage return and a line feed, also in quotes.
			if want := strings.ReplaceAll(text, "\r\n", "\n"); rows[n+1][1] != want || rows[n+1][0] != "item-"+strconv.Itoa(n+1) {
				t.Errorf("%s: %q, want %q", format, rows[n+1], want)
			}
		}
	}
	rows := strings.Split(exported(t, path, flags{format: "jsonl"}), "\n")
	for n, text := range odd {
		var row struct{ Text string }
		if must.Do(t, json.Unmarshal([]byte(rows[n]), &row)); row.Text != text {
			t.Errorf("%q, want %q", row.Text, text)
		}
	}
	md := exported(t, path, flags{format: "md"})
	if rows := strings.Count(md, "\n"); rows != len(odd)+2 || !strings.Contains(md, `| two<br>lines |`) || strings.Contains(md, "\x1b") {
		t.Errorf("%d rows in %.2000s", rows, md)
	}
}

// A cell has quotes where a reader needs them: around what would end it, and around an empty text, which is a value.
func TestQuotes(t *testing.T) {
	for text, want := range map[string]string{"a": "a", "a\tb": "a\tb", "": `""`, "a\rb": "\"a\rb\"", "a\nb": "\"a\nb\"", " a": `" a"`, "a ": `"a "`, "a,b": `"a,b"`, `a"b`: `"a""b"`} {
		l := lineOf(1, "{}")
		l.Headrace.Text = &text
		if path := output(t, l); exported(t, path, flags{}) != "id,text\nitem-1,"+want+"\n" {
			t.Errorf("%q: %q", text, exported(t, path, flags{}))
		}
	}
}

// What JSON can say and a CSV or a character cannot is replaced, and nothing after it is lost.
func TestWhatIsNoText(t *testing.T) {
	path := output(t, lineOf(1, fmt.Sprintf(chat, `"a\u0000b"`)), lineOf(2, fmt.Sprintf(chat, `"a\ud800b"`)), lineOf(3, "bad \xff \xfe, and no JSON"))
	if got := exported(t, path, flags{fields: []string{"id", "text", "body"}}); strings.Count(got, "a\uFFFDb") != 2 || strings.Count(got, "\x00") != 0 || !strings.HasSuffix(got, "\nitem-3,,\"bad \uFFFD \uFFFD, and no JSON\"\n") {
		t.Errorf("%q", got)
	}
	if got := exported(t, path, flags{format: "jsonl"}); got != "{\"id\":\"item-1\",\"text\":\"a\\u0000b\"}\n{\"id\":\"item-2\",\"text\":\"a\uFFFDb\"}\n{\"id\":\"item-3\",\"text\":null}\n" {
		t.Errorf("%q", got)
	}
}

// Every dialect's answer has its words, and its end in a common word. An answer without words has none.
func TestTextAndFinish(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a chat":              {fmt.Sprintf(chat, `"hi"`), "hi,stop"},
		"two choices":         {`{"choices":[{"message":{"content":"one"},"finish_reason":"length"},{"message":{"content":"two"},"finish_reason":"stop"}]}`, "one,length"},
		"no choice":           {`{"choices":[]}`, ","},
		"odd choices":         {`{"choices":[null,{"message":{"content":"two"}}]}`, ","},
		"a call of a tool":    {`{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"tool_calls"}]}`, ",tool"},
		"parts":               {`{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"stop"}]}`, "ab,stop"},
		"a refusal":           {`{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}`, "no,stop"},
		"a completion":        {`{"choices":[{"text":"so","finish_reason":"stop"}]}`, "so,stop"},
		"a Response":          {`{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"r"}]}],"incomplete_details":null}`, "r,stop"},
		"a Response, cut off": {`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`, ",length"},
		"Anthropic":           {`{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`, "a,stop"},
		"Gemini":              {`{"candidates":[{"content":{"parts":[{"text":"g"}]},"finishReason":"MAX_TOKENS"}]}`, "g,length"},
		"Converse":            {`{"output":{"message":{"content":[{"text":"c"}]}},"stopReason":"guardrail_intervened"}`, "c,refused"},
		"embeddings":          {`{"object":"list","data":[{"embedding":[0.1,-2]}]}`, ","},
		"no object":           {`[1]`, ","},
		"no answer":           {``, ","},
	} {
		if got := exported(t, output(t, lineOf(1, c.body)), flags{fields: []string{"text", "finish"}}); got != "text,finish\n"+c.want+"\n" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	l, text := lineOf(1, `{"x":1}`), "of headrace"
	l.Headrace.Text, l.Headrace.Finish = &text, "other"
	if got := exported(t, output(t, l), flags{fields: []string{"text", "finish"}}); got != "text,finish\nof headrace,other\n" {
		t.Errorf("%q", got)
	}
}

// The usual columns show results and failures; a cost that is not known is empty, and not 0.
func TestUsualColumns(t *testing.T) {
	free := lineOf(2, fmt.Sprintf(chat, `""`))
	free.Headrace.CostUSD = nil
	path := withErrors(t, []*journal.Line{lineOf(1, fmt.Sprintf(chat, `"x"`)), free}, []*journal.Line{failedLine(3, "no, never"), failedLine(1, "once")})
	const head = "id,line,model,text,finish,input_tokens,output_tokens,cost_usd,attempts,queued_ms,waited_ms,latency_ms,error,message\n"
	const failed = "item-3,3,gpt-4o,,,19,25,0.000012,1,1,0,188,timeout,\"no, never\"\n"
	for want, f := range map[string]*flags{
		head + "item-1,1,gpt-4o,x,stop,19,25,0.000012,1,1,0,188,,\nitem-2,2,gpt-4o,,stop,19,25,,1,1,0,188,,\n" + failed: {},
		head + failed: {failed: true},
	} {
		var out bytes.Buffer
		if must.Do(t, exportTo(&out, path, f)); out.String() != want {
			t.Errorf("got  %q\nwant %q", out.String(), want)
		}
	}
	for _, name := range Fields() {
		if got := exported(t, path, flags{fields: []string{name}}); strings.Count(got, "\n") != 4 || strings.Contains(got, "\n\n") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Paths lead to any value; one that leads nowhere is empty.
func TestPaths(t *testing.T) {
	path := output(t, lineOf(1, `{"a.b":{"c":[[1,2],{"d":"e"}]},"vector":[0.1,-2],"yes":true,"none":null}`))
	for at, want := range map[string]string{
		`response.body["a.b"].c[1].d`: "e", `$.response.body["a.b"]["c"][0][1]`: "2", ".response.status_code": "200", "response.body.vector": `"[0.1,-2]"`,
		"response.body.yes": "true", "response.body.none": `""`, "response.body.vector[2]": `""`, "response.body.vector.x": `""`, "response.body.yes[0]": `""`,
		"headrace.lane": "sim/all", "custom_id": "item-1", "error": `""`, "answer.x": `""`,
	} {
		var out bytes.Buffer
		f := &flags{fields: []string{"id"}, field: []string{"x=" + at}}
		columns := must.Get(f.complete(path))(t)
		tab := &task{flags: f, output: path, columns: columns[1:], form: formOf("csv", false)}
		if must.Do(t, tab.run(&out)); out.String() != "x\n"+want+"\n" {
			t.Errorf("%s: %q, want %q", at, out.String(), want)
		}
	}
	for _, at := range []string{"", "$", "body", "response..body", "response[", "response[x]", "response[0", `response["a"`, "response[0]x", "response.a.", "response[-1]", `response["a]`, `response[""]`, "response.", "[0]"} {
		if p, ok := parsePath(at); ok {
			t.Errorf("%s: %+v", at, p)
		}
	}
}

// With --json the members of answers are columns, in the order in which they came. Names that are taken get a word before
// them, a fence does no harm, and other answers have empty cells.
func TestAnswersAsColumns(t *testing.T) {
	path := output(t,
		lineOf(1, fmt.Sprintf(chat, `"{\"mood\":\"good\",\"id\":7}"`)), lineOf(2, fmt.Sprintf(chat, `"`+"```json"+`\n{\"score\": 0.5, \"tags\": [\"a\"]}\n`+"```"+`"`)),
		lineOf(3, fmt.Sprintf(chat, `"I cannot"`)), lineOf(4, fmt.Sprintf(chat, `"{\"mood\":"`)))
	want := "id,mood,answer.id,score,tags\nitem-1,good,7,,\nitem-2,,,0.5,\"[\"\"a\"\"]\"\nitem-3,,,,\nitem-4,,,,\n"
	var out bytes.Buffer
	f := &flags{fields: []string{"id"}, json: true}
	tab := &task{flags: f, output: path, columns: must.Get(f.complete(path))(t), form: formOf("csv", false)}
	if must.Do(t, tab.run(&out)); out.String() != want || tab.unread != 2 {
		t.Errorf("%q, %d", out.String(), tab.unread)
	}
	var wide []string
	for n := range mostNames + 1 {
		wide = append(wide, fmt.Sprintf(`\"n%d\":1`, n))
	}
	tab.output = output(t, lineOf(1, fmt.Sprintf(chat, `"{`+strings.Join(wide, ",")+`}"`)))
	if err := tab.run(&out); err == nil || !strings.Contains(err.Error(), "more than 1000 different names") {
		t.Error(err)
	}
}

// --join finds the input's lines by id, also those that give none, in any of several files. Other answers have no input.
func TestJoin(t *testing.T) {
	folder := t.TempDir()
	one, two := filepath.Join(folder, "1.jsonl"), filepath.Join(folder, "2.jsonl")
	must.Do(t, os.WriteFile(one, []byte(byteOrderMark+`{"id":"item-1","prompt":"p1"}`+"\n\n"+`{"prompt":"p`+strings.Repeat("3", 2*windowSize)+`"}`+"\nno json\n"+`{"id":"item-10","prompt":"p10"}`), 0o600))
	must.Do(t, os.WriteFile(two, []byte(`{"custom_id":"item-2","prompt":"p2","extra":[1]}`+"\r\n"+`{"id":7,"prompt":"p7"}`+"\n"+`{"id":"own","prompt":"p8","body":{"n":1}}`+"\n"+`{"id":"other","prompt":"p9","params":{}}`), 0o600))
	bare, number := lineOf(3, fmt.Sprintf(chat, `"c"`)), lineOf(4, fmt.Sprintf(chat, `"d"`))
	bare.CustomID, number.CustomID = "line-000003", "7"
	batched, templated := lineOf(11, fmt.Sprintf(chat, `"g"`)), lineOf(12, fmt.Sprintf(chat, `"h"`))
	batched.CustomID, templated.CustomID = "line-000008", "other"
	path := output(t, lineOf(1, fmt.Sprintf(chat, `"a"`)), lineOf(2, fmt.Sprintf(chat, `"b"`)), bare, number, lineOf(9, fmt.Sprintf(chat, `"e"`)), lineOf(10, fmt.Sprintf(chat, `"f"`)), batched, templated)
	f := &flags{fields: []string{"text"}, join: []string{one, two}, field: []string{"first=input.extra[0]"}}
	tab := &task{flags: f, output: path, columns: must.Get(f.complete(path))(t), form: formOf("csv", false)}
	var out bytes.Buffer
	must.Do(t, tab.run(&out))
	want := "text,first,input.prompt,input.extra,input.body,input.params\na,,p1,,,\nb,1,p2,[1],,\nc,,p" + strings.Repeat("3", 2*windowSize) + ",,,\nd,,p7,,,\ne,,,,,\nf,,p10,,,\n" +
		"g,,p8,,\"{\"\"n\"\":1}\",\nh,,p9,,,{}\n"
	if out.String() != want || tab.unjoined != 1 {
		t.Errorf("%.200q, %d", out.String(), tab.unjoined)
	}
	must.Do(t, os.WriteFile(one, []byte("text\n"), 0o600))
	if err := tab.run(&out); err == nil || !strings.Contains(err.Error(), "not a JSON object") {
		t.Error(err)
	}
}

// --in-order sorts results and failures by their lines in the input; a last line without its line feed is whole.
func TestInOrder(t *testing.T) {
	var results []*journal.Line
	for n := range 999 {
		if line := (n*500)%999 + 1; line != 5 {
			results = append(results, lineOf(line, fmt.Sprintf(chat, `"x"`)))
		}
	}
	path := withErrors(t, results, []*journal.Line{failedLine(5, "no")})
	text := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.WriteFile(path, bytes.TrimSuffix(text, []byte("\n")), 0o600))
	rows := strings.Split(strings.TrimSpace(exported(t, path, flags{fields: []string{"line"}, inOrder: true})), "\n")
	var want []string
	for n := range 999 {
		want = append(want, strconv.Itoa(n+1))
	}
	if !reflect.DeepEqual(rows[1:], want) {
		t.Errorf("%q", rows)
	}
}

// A spreadsheet runs no text as a formula; numbers stay numbers.
func TestSpreadsheet(t *testing.T) {
	var lines []*journal.Line
	texts := []string{"=HYPERLINK(\"x\")", "+1", "-1", "@a", "\t=1", "\r=1", "a=1"}
	for n, text := range texts {
		lines = append(lines, lineOf(n+1, fmt.Sprintf(chat, must.Get(json.Marshal(text))(t))))
	}
	got := exported(t, output(t, lines...), flags{spreadsheet: true, fields: []string{"text", "line"}})
	rows := must.Get(csv.NewReader(strings.NewReader(strings.TrimPrefix(got, byteOrderMark))).ReadAll())(t)
	if !strings.HasPrefix(got, byteOrderMark) {
		t.Errorf("%q", got)
	}
	for n, text := range texts {
		if want := strings.Replace("'"+text, "'a", "a", 1); rows[n+1][0] != want || rows[n+1][1] != strconv.Itoa(n+1) {
			t.Errorf("%q, want %q", rows[n+1], want)
		}
	}
}

// An export allocates no more for many items than for few, but for 16 bytes an item where the order or the input is kept.
func TestMemoryIsBounded(t *testing.T) {
	few, most := many(t, 100), many(t, 5000)
	input := filepath.Join(t.TempDir(), "in.jsonl")
	must.Do(t, os.WriteFile(input, []byte(`{"prompt":"x"}`+"\n"), 0o600))
	allocated := func(path string, f flags) float64 {
		return testing.AllocsPerRun(2, func() { _ = exported(t, path, f) })
	}
	for _, f := range []flags{{}, {format: "jsonl"}, {inOrder: true}, {json: true}, {join: []string{input}}} {
		if a, b := allocated(few, f), allocated(most, f); b-a > 100 {
			t.Errorf("%+v: %v and %v allocations", f, a, b)
		}
	}
}
