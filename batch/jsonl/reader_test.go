package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// read gives every request and complaint of a text.
func read(t *testing.T, text string, cfg ReaderConfig) (reqs []Request, bad []*LineError) {
	t.Helper()
	cfg.Name = "prompts.jsonl"
	for req, err := range NewReader(strings.NewReader(text), cfg).All() {
		var c *LineError
		switch {
		case errors.As(err, &c):
			bad = append(bad, c)
		case err != nil:
			t.Fatalf("read: %v", err)
		default:
			reqs = append(reqs, req)
		}
	}
	return reqs, bad
}

// one reads a text of one good line.
func one(t *testing.T, text string, cfg ReaderConfig) Request {
	t.Helper()
	reqs, bad := read(t, text, cfg)
	if len(bad) > 0 || len(reqs) != 1 {
		t.Fatalf("%s: %d requests, complaints %v", text, len(reqs), bad)
	}
	return reqs[0]
}

func describe(r Request) string {
	return fmt.Sprintf("%d %q %t %v %s %q %s %s", r.Line, r.ID, r.HasID, r.Form, r.Endpoint, r.Model, r.Body, r.Metadata)
}

// Each form becomes the request that its documentation promises, byte for byte.
func TestFormsBecomeRequests(t *testing.T) {
	withModel := ReaderConfig{DefaultModel: `gpt-4o-"mini"`}
	tests := []struct {
		name, line string
		cfg        ReaderConfig
		want       Request
	}{
		{
			"an OpenAI batch body goes out as it came",
			`{"custom_id":"a","method":"POST","url":"/v1/embeddings","body": { "model" : "e" ,"input":"\u00e9", "n":1.50} }`, withModel,
			Request{ID: "a", HasID: true, Form: FormOpenAIBatch, Endpoint: Embeddings, Model: "e", Body: []byte(`{ "model" : "e" ,"input":"\u00e9", "n":1.50}`)},
		},
		{
			"an OpenAI batch body without model gets the default in front",
			`{"body":{"messages": [] , "x":1 }}`, withModel,
			Request{ID: "line-000001", Form: FormOpenAIBatch, Endpoint: ChatCompletions, Model: `gpt-4o-"mini"`, Body: []byte(`{"model":"gpt-4o-\"mini\"","messages": [] , "x":1 }`)},
		},
		{
			"an empty body gets nothing but the model",
			`{"body":{ }}`,
			ReaderConfig{DefaultModel: "m"},
			Request{ID: "line-000001", Form: FormOpenAIBatch, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m"}`)},
		},
		{
			"a model of null is replaced",
			`{"body":{"a":1, "model":null, "b":2}}`,
			ReaderConfig{DefaultModel: "m"},
			Request{ID: "line-000001", Form: FormOpenAIBatch, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","a":1, "b":2}`)},
		},
		{
			"metadata inside an OpenAI batch body is the provider's, beside it the user's",
			`{"custom_id":"a","body":{"model":"m","metadata":{"p":1}},"metadata":{"u":2}}`, withModel,
			Request{ID: "a", HasID: true, Form: FormOpenAIBatch, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","metadata":{"p":1}}`), Metadata: json.RawMessage(`{"u":2}`)},
		},
		{
			"a bare body loses its metadata and no other byte",
			`{ "model":"m", "metadata" : {"a": [1, 2]} , "messages":[{"role":"user","content":"\"}"}] ,"seed":7 }`, withModel,
			Request{ID: "line-000001", Form: FormBody, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m" , "messages":[{"role":"user","content":"\"}"}] ,"seed":7 }`), Metadata: json.RawMessage(`{"a": [1, 2]}`)},
		},
		{
			"a bare body may bear an id, also as a number",
			`{"id":17,"messages":[],"model":"m"}`, withModel,
			Request{ID: "17", HasID: true, Form: FormBody, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"messages":[],"model":"m"}`)},
		},
		{
			"the last field is cut off with its comma",
			`{"messages":[],"model":"m","custom_id":"z"}`, withModel,
			Request{ID: "z", HasID: true, Form: FormBody, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"messages":[],"model":"m"}`)},
		},
		{
			"input for a model that embeds is an embedding",
			`{"model":"text-embedding-3-small","input":"x"}`,
			ReaderConfig{},
			Request{ID: "line-000001", Form: FormBody, Endpoint: Embeddings, Model: "text-embedding-3-small", Body: []byte(`{"model":"text-embedding-3-small","input":"x"}`)},
		},
		{
			"input with a setting of embeddings is an embedding",
			`{"model":"m","input":"x","dimensions":64}`,
			ReaderConfig{},
			Request{ID: "line-000001", Form: FormBody, Endpoint: Embeddings, Model: "m", Body: []byte(`{"model":"m","input":"x","dimensions":64}`)},
		},
		{
			"other input is a response",
			`{"model":"gpt-4o-mini","input":"x"}`,
			ReaderConfig{},
			Request{ID: "line-000001", Form: FormBody, Endpoint: Responses, Model: "gpt-4o-mini", Body: []byte(`{"model":"gpt-4o-mini","input":"x"}`)},
		},
		{
			"a prompt becomes a chat, what else it says goes along unchanged",
			`{"id":"p","prompt":"h\u00e9 \"x\"","temperature":0.20,"tools":[ {"a":1} ],"stream":false}`,
			ReaderConfig{DefaultModel: "m", System: "be\nkind"},
			Request{ID: "p", HasID: true, Form: FormPrompt, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","messages":[{"role":"system","content":"be\nkind"},{"role":"user","content":"h\u00e9 \"x\""}],"temperature":0.20,"tools":[ {"a":1} ],"stream":false}`)},
		},
		{
			"a prompt's own system and model win, its metadata comes back",
			`{"prompt":"q","system":"s","model":"own","metadata":{"k":1}}`,
			ReaderConfig{DefaultModel: "m", System: "other"},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: ChatCompletions, Model: "own", Body: []byte(`{"model":"own","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}]}`), Metadata: json.RawMessage(`{"k":1}`)},
		},
		{
			"a prompt is the input of an embedding",
			`{"prompt":"q"}`,
			ReaderConfig{DefaultModel: "m", DefaultEndpoint: Embeddings, System: "unused"},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: Embeddings, Model: "m", Body: []byte(`{"model":"m","input":"q"}`)},
		},
		{
			"a prompt is the input of a response, its system the instructions",
			`{"prompt":"q","system":"s"}`,
			ReaderConfig{DefaultModel: "m", DefaultEndpoint: Responses},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: Responses, Model: "m", Body: []byte(`{"model":"m","instructions":"s","input":"q"}`)},
		},
		{
			"a prompt is the prompt of a completion",
			`{"prompt":["q"],"max_tokens":5}`,
			ReaderConfig{DefaultModel: "m", DefaultEndpoint: Completions},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: Completions, Model: "m", Body: []byte(`{"model":"m","prompt":["q"],"max_tokens":5}`)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := one(t, tt.line, tt.cfg)
			if len(got.Key) != 32 {
				t.Errorf("key %q is not 32 digits long", got.Key)
			}
			got.Key, tt.want.Line = "", 1
			if g, w := describe(got), describe(tt.want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
		})
	}
}

// What is not a request is named with file, line, reason and remedy, and has a kind.
func TestBadLinesAreNamed(t *testing.T) {
	tests := []struct {
		line string
		kind error
		want string
	}{
		{`{"prompt":`, ErrNotJSON, "not JSON: unexpected end of JSON input"},
		{`{"prompt":"a"} x`, ErrNotJSON, "not JSON: invalid character 'x' after top-level value at byte 16"},
		{`[1]`, ErrShape, "an array, not an object"},
		{`"x"`, ErrShape, "a string, not an object"},
		{`17`, ErrShape, "a number, not an object"},
		{`null`, ErrShape, "null, not an object"},
		{`true`, ErrShape, "a truth value, not an object"},
		{`{}`, ErrShape, "unknown shape"},
		{`{"question":"x"}`, ErrShape, "unknown shape"},
		{`{"prompt":"a","messages":[]}`, ErrShape, "both a prompt and messages"},
		{`{"prompt":"a","input":[]}`, ErrShape, "both a prompt and input"},
		{`{"messages":[],"input":[]}`, ErrShape, "both messages and input"},
		{`{"prompt":7}`, ErrShape, "prompt is a number, not a string"},
		{`{"prompt":"a","prompt":"b"}`, ErrShape, `field "prompt" stands there twice`},
		{`{"body":{"model":"a","mod\u0065l":"b"}}`, ErrShape, `field "model" stands there twice`},
		{`{"prompt":"a","system":[]}`, ErrShape, "system is an array, not a string"},
		{`{"prompt":"a","metadata":"x"}`, ErrShape, "metadata is a string, not an object"},
		{`{"prompt":"a","id":true}`, ErrShape, "id is a truth value, not a string"},
		{`{"prompt":"a","custom_id":""}`, ErrShape, "custom_id is empty"},
		{`{"prompt":"a","custom_id":"a","id":"b"}`, ErrShape, "both custom_id and id"},
		{`{"prompt":"a","model":7}`, ErrShape, "model is a number, not a string"},
		{`{"prompt":"a","model":""}`, ErrNoModel, "model is empty"},
		{`{"url":"/v1/chat/completions"}`, ErrShape, "no body object"},
		{`{"body":"x"}`, ErrShape, "no body object"},
		{`{"body":{},"method":"GET"}`, ErrShape, `method is "GET", not POST`},
		{`{"body":{},"url":"http://169.254.169.254/v1/chat/completions"}`, ErrURL, "is not known"},
		{`{"body":{},"url":"//evil.example/v1/chat/completions"}`, ErrURL, "is not known"},
		{`{"body":{},"url":"/v1/../admin"}`, ErrURL, `url "/v1/../admin" is not known`},
		{`{"body":{},"url":"/v1/chat/completions/"}`, ErrURL, "is not known"},
		{`{"body":{},"url":["/v1/chat/completions"]}`, ErrURL, "is not known"},
		{`{"prompt":"a","stream":true}`, ErrStream, `"stream": true`},
		{`{"messages":[],"stream":true}`, ErrStream, `"stream": true`},
		{`{"body":{"stream":true}}`, ErrStream, `"stream": true`},
		{`{"custom_id":"a","params":{"model":"c"}}`, ErrUnsupported, "not supported yet"},
		{"{\"prompt\":\"a\x00b\"}", ErrText, "NUL byte at byte 13"},
		{"{\"prompt\":\"é\xff\"}", ErrText, "invalid UTF-8 at byte 14"},
		{`{"prompt":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}", ErrNotJSON, "not JSON: invalid character '[' exceeded max depth"},
	}
	for _, tt := range tests {
		t.Run(clip(tt.line), func(t *testing.T) {
			text := "{\"prompt\":\"before\"}\n" + tt.line + "\n{\"prompt\":\"after\"}\n"
			reqs, bad := read(t, text, ReaderConfig{DefaultModel: "m"})
			if len(reqs) != 2 || len(bad) != 1 {
				t.Fatalf("%d requests, complaints %v", len(reqs), bad)
			}
			said := bad[0].Error()
			if !strings.HasPrefix(said, "prompts.jsonl:2: ") || !strings.Contains(said, tt.want) || bad[0].Advice == "" {
				t.Errorf("said %q, want %q", said, tt.want)
			}
			if !errors.Is(bad[0], tt.kind) {
				t.Errorf("kind is %v, want %v", bad[0].Err, tt.kind)
			}
		})
	}
}

// A line without model is refused only where no default stands in for it.
func TestModelIsNeeded(t *testing.T) {
	for _, line := range []string{`{"prompt":"a"}`, `{"messages":[]}`, `{"input":"a"}`, `{"body":{}}`} {
		_, bad := read(t, line, ReaderConfig{})
		if len(bad) != 1 || !errors.Is(bad[0], ErrNoModel) {
			t.Errorf("%s: %v", line, bad)
		}
		if req := one(t, line, ReaderConfig{DefaultModel: "m"}); req.Model != "m" {
			t.Errorf("%s: model %q", line, req.Model)
		}
	}
}

// An endpoint that is not known is refused also where the default brings it.
func TestDefaultEndpointIsChecked(t *testing.T) {
	_, bad := read(t, `{"prompt":"a","model":"m"}`, ReaderConfig{DefaultEndpoint: "/v2/x"})
	if len(bad) != 1 || !errors.Is(bad[0], ErrURL) {
		t.Errorf("complaints %v", bad)
	}
}

// A BOM, CRLF, blank lines, white space around a line and a missing last line
// feed change nothing but line numbers.
func TestLinesAreReadAsMeant(t *testing.T) {
	text := "\xEF\xBB\xBF{\"prompt\":\"a\"}\r\n\r\n   \t\n  {\"prompt\":\"b\"} \t\r\n\n{\"prompt\":\"c\"}"
	reqs, bad := read(t, text, ReaderConfig{DefaultModel: "m"})
	var lines []int
	for _, r := range reqs {
		lines = append(lines, r.Line)
	}
	if len(bad) > 0 || !slices.Equal(lines, []int{1, 4, 6}) {
		t.Errorf("lines %v, complaints %v", lines, bad)
	}
	for _, empty := range []string{"", "\n", "\xEF\xBB\xBF", "\r\n \n"} {
		if reqs, bad := read(t, empty, ReaderConfig{}); len(reqs)+len(bad) > 0 {
			t.Errorf("%q: %v %v", empty, reqs, bad)
		}
	}
}

// How the input is cut into reads does not matter.
func TestReadsOfOneByte(t *testing.T) {
	text := "{\"prompt\":\"" + strings.Repeat("é", readBuffer) + "\"}\n{x\n\n{\"prompt\":\"b\"}"
	want, _ := read(t, text, ReaderConfig{DefaultModel: "m"})
	var got []Request
	for req, err := range NewReader(iotest.OneByteReader(strings.NewReader(text)), ReaderConfig{DefaultModel: "m"}).All() {
		if err == nil {
			got = append(got, req)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(want) != 2 {
		t.Errorf("%d requests, want %d alike", len(got), len(want))
	}
}

// A line of exactly the bound is read, one byte more is named, and so is one that
// is mostly white space, whatever stands behind that; the next line is read.
func TestLineBound(t *testing.T) {
	line := func(n int) string {
		return `{"prompt":"` + strings.Repeat("a", n-len(`{"prompt":""}`)) + `"}`
	}
	for _, limit := range []int{100, readBuffer - 1, readBuffer, 3*readBuffer + 5} {
		cfg := ReaderConfig{DefaultModel: "m", MaxLine: limit}
		reqs, bad := read(t, line(limit)+"\r\n"+line(limit+1)+"\n"+line(20), cfg)
		if len(reqs) != 2 || len(bad) != 1 || bad[0].Line != 2 || !errors.Is(bad[0], ErrTooLong) {
			t.Errorf("bound %d: %d requests, complaints %v", limit, len(reqs), bad)
		}
		reqs, bad = read(t, line(20)+strings.Repeat(" ", limit+readBuffer)+"x\n"+line(20), cfg)
		if len(reqs) != 1 || len(bad) != 1 {
			t.Errorf("bound %d, white space: %d requests, complaints %v", limit, len(reqs), bad)
		}
	}
}

// endless gives a line of n bytes and then a good one, without holding it.
func endless(n int64) io.Reader {
	return io.MultiReader(io.LimitReader(repeated('a'), n), strings.NewReader("\n{\"prompt\":\"x\"}"))
}

type repeated byte

func (r repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// A line of 100 MB is named, the next is read, and what is held stays near the bound.
func TestHugeLineTakesBoundedMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := NewReader(endless(100<<20), ReaderConfig{DefaultModel: "m", MaxLine: 1 << 20})
	if _, err := r.Next(); !errors.Is(err, ErrTooLong) {
		t.Fatalf("a huge line: %v", err)
	}
	if req, err := r.Next(); err != nil || req.Line != 2 {
		t.Fatalf("the line after it: %v %v", req, err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("allocated %d bytes for a bound of 1 MiB", took)
	}
}

// The buffer of a long line is not held while short ones follow.
func TestLongLinesBufferIsGivenBack(t *testing.T) {
	text := `{"prompt":"` + strings.Repeat("a", 2*keepBuffer) + "\"}\n{\"prompt\":\"b\"}\n"
	r := NewReader(strings.NewReader(text), ReaderConfig{DefaultModel: "m"})
	sum, _, _ := Check(r)
	if held := cap(r.lines.long); held > keepBuffer || sum.Items != 2 {
		t.Errorf("%d items, %d bytes held", sum.Items, held)
	}
}

// An input that breaks says so again and again, and its torn line is not a request.
func TestBrokenInputIsAnError(t *testing.T) {
	broken := errors.New("unexpected end of gzip stream")
	for _, cause := range []error{broken, io.ErrUnexpectedEOF, fmt.Errorf("decompress: %w", io.EOF)} {
		in := io.MultiReader(strings.NewReader("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}"), iotest.ErrReader(cause))
		r := NewReader(in, ReaderConfig{Name: "p.gz", DefaultModel: "m"})
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := r.Next()
			if !errors.Is(err, cause) || atEnd(err) || !strings.Contains(err.Error(), "read p.gz after line 1") {
				t.Errorf("%v: got %v", cause, err)
			}
		}
	}
}

// An id used twice is named with both lines; lines without one never get one that is taken.
func TestDuplicateIDsNameBothLines(t *testing.T) {
	text := `{"custom_id":"a","prompt":"1"}
{"custom_id":"b","prompt":"1"}
{"id":"a","prompt":"2"}
{"prompt":"3"}
{"custom_id":"line-000004","prompt":"4"}
{"custom_id":"line-000007","prompt":"5"}
{"prompt":"6"}
{"custom_id":"line-8","prompt":"7"}
{"custom_id":"line-000009","prompt":"its own number"}
{"id":3.0,"prompt":"8"}
{"id":"3.0","prompt":"9"}`
	_, bad := read(t, text, ReaderConfig{DefaultModel: "m"})
	got := map[int]string{}
	for _, b := range bad {
		got[b.Line] = b.Reason[strings.LastIndex(b.Reason, "on line"):]
		if !errors.Is(b, ErrDuplicateID) {
			t.Errorf("kind of %v", b)
		}
	}
	want := map[int]string{3: "on line 1 already", 5: "on line 4 already", 7: "on line 6 already", 11: "on line 10 already"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if reqs, bad := read(t, text, ReaderConfig{DefaultModel: "m", Checked: true}); len(bad) > 0 || len(reqs) != 11 {
		t.Errorf("a reader told that ids are good complains: %v", bad)
	}
}

// A line without an id keeps its key when lines come above it; lines that ask the
// same have different keys all the same.
func TestKeysOfLinesWithoutID(t *testing.T) {
	cfg := ReaderConfig{DefaultModel: "m"}
	before, _ := read(t, "{\"prompt\":\"a\"}\n{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n", cfg)
	after, _ := read(t, "\n{\"prompt\":\"new\"}\n{\"prompt\":\"b\"}\n{\"prompt\":\"a\"}\n{ \"prompt\" : \"a\" }\n", cfg)
	keys := func(reqs []Request) []string {
		out := []string{}
		for _, r := range reqs {
			out = append(out, r.Key)
		}
		slices.Sort(out)
		return out
	}
	if b := keys(before); len(slices.Compact(slices.Clone(b))) != 3 {
		t.Errorf("keys are not all different: %v", b)
	}
	for _, k := range keys(before) {
		if !slices.Contains(keys(after), k) {
			t.Errorf("key %s is lost by moving lines", k)
		}
	}
}

// A request stays as it is while the reader reads on: nothing of it lies in a
// buffer that is used again.
func TestRequestsOwnTheirMemory(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		if i%2 == 0 {
			fmt.Fprintf(&text, `{"custom_id":"c%d","metadata":{"n":%d},"messages":[],"model":"m%d"}`+"\n", i, i, i%3)
		} else {
			fmt.Fprintf(&text, `{"custom_id":"c%d","body":{"messages":[],"model":"m%d"},"metadata":{"n":%d}}`+"\n", i, i%3, i)
		}
	}
	reqs, _ := read(t, text.String(), ReaderConfig{})
	for i, r := range reqs {
		body, meta := fmt.Sprintf(`{"messages":[],"model":"m%d"}`, i%3), fmt.Sprintf(`{"n":%d}`, i)
		if string(r.Body) != body || string(r.Metadata) != meta || r.ID != fmt.Sprintf("c%d", i) {
			t.Fatalf("request %d has changed: %+v %s", i, r, r.Body)
		}
	}
}

// Leaving the range over All early leaves the reader usable.
func TestAllCanBeLeft(t *testing.T) {
	r := NewReader(strings.NewReader("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n"), ReaderConfig{DefaultModel: "m"})
	for range r.All() {
		break
	}
	if req, err := r.Next(); err != nil || req.Line != 2 {
		t.Errorf("after a break: %+v %v", req, err)
	}
}

// Check tells what is in a file, lists bad lines up to its bound, and counts all.
func TestCheckSumsUp(t *testing.T) {
	text := `{"prompt":"a"}` + "\n\n" + `{"model":"e-embed","input":"x"}` + "\n" + `{"prompt":"a","model":"x"}` + "\n" +
		strings.Repeat("{x}\n", MaxComplaints+5)
	sum, bad, err := Check(NewReader(strings.NewReader(text), ReaderConfig{DefaultModel: "m"}))
	if err != nil || len(bad) != MaxComplaints || sum.Bad != MaxComplaints+5 || bad[0].Line != 5 {
		t.Fatalf("%d complaints of %d, error %v", len(bad), sum.Bad, err)
	}
	if sum.Items != 3 || sum.Lines != 4+MaxComplaints+5 || sum.Bytes == 0 {
		t.Errorf("summary %+v", sum)
	}
	if !maps.Equal(sum.Models, map[string]int{"m": 1, "e-embed": 1, "x": 1}) ||
		!maps.Equal(sum.Endpoints, map[string]int{ChatCompletions: 2, Embeddings: 1}) {
		t.Errorf("summary %+v", sum)
	}
}

// Check of an input that breaks gives the fault and what came before it.
func TestCheckTellsAFault(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader("{\"prompt\":\"a\"}\n"), iotest.ErrReader(broken))
	sum, bad, err := Check(NewReader(in, ReaderConfig{DefaultModel: "m"}))
	if !errors.Is(err, broken) || sum.Items != 1 || sum.Lines != 1 || len(bad) != 0 {
		t.Errorf("%+v %v %v", sum, bad, err)
	}
}

// A file that names a new model on each line fills neither reader nor summary.
func TestModelsAreBounded(t *testing.T) {
	var text bytes.Buffer
	for i := range 2 * MaxModels {
		fmt.Fprintf(&text, `{"prompt":"a","model":"m%d"}`+"\n", i)
	}
	r := NewReader(&text, ReaderConfig{})
	sum, _, _ := Check(r)
	if len(sum.Models) != MaxModels || sum.OtherModels != MaxModels || len(r.models) != knownModels {
		t.Errorf("%d models, %d others, %d known", len(sum.Models), sum.OtherModels, len(r.models))
	}
}

// numbered is a file that is made while it is read.
type numbered struct {
	format string
	left   int
	rest   []byte
}

func (n *numbered) Read(p []byte) (int, error) {
	if len(n.rest) == 0 {
		if n.left == 0 {
			return 0, io.EOF
		}
		n.left--
		n.rest = fmt.Appendf(n.rest, n.format, n.left)
	}
	k := copy(p, n.rest)
	n.rest = n.rest[k:]
	return k, nil
}

// What the reader remembers of an item is within BytesPerItem, with ids and without.
func TestMemoryPerItem(t *testing.T) {
	const items = 200_000
	for _, line := range []string{`{"custom_id":"%d","prompt":"a"}`, `{"prompt":"%d"}`} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := NewReader(&numbered{format: line + "\n", left: items}, ReaderConfig{DefaultModel: "m"})
		if sum, _, err := Check(r); err != nil || sum.Items != items {
			t.Fatalf("%+v %v", sum, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		perItem := float64(after.HeapAlloc-before.HeapAlloc-2*readBuffer) / items
		t.Logf("%s: %.1f bytes an item", line, perItem)
		if perItem > BytesPerItem {
			t.Errorf("%s: %.1f bytes an item, promised %d", line, perItem, BytesPerItem)
		}
		runtime.KeepAlive(r)
	}
}

// The prompts that the first command of the README runs are all good: 240 of them,
// in three forms, with and without ids.
func TestExamplePrompts(t *testing.T) {
	file, err := os.Open("../../examples/prompts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	forms, bare := map[Form]int{}, 0
	for req, err := range NewReader(file, ReaderConfig{Name: file.Name(), DefaultModel: "m"}).All() {
		if err != nil {
			t.Fatal(err)
		}
		if forms[req.Form]++; !req.HasID {
			bare++
		}
	}
	if want := map[Form]int{FormOpenAIBatch: 60, FormBody: 60, FormPrompt: 120}; !maps.Equal(forms, want) || bare == 0 {
		t.Errorf("forms %v, %d without id", forms, bare)
	}
}
