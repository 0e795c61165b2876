package prompts

import (
	"bytes"
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

	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/internal/must"
)

// read gives every request and complaint of a text.
func read(t *testing.T, text string, cfg Config) (reqs []Request, bad []*LineError) {
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

// through reads an input to its end, and counts its items.
func through(r *Reader) (items int, bad []*LineError, err error) {
	r.cfg.Passing, r.cfg.NoKeys = true, true
	for _, err := range r.All() {
		var c *LineError
		switch {
		case errors.As(err, &c):
			bad = append(bad, c)
		case err != nil:
			return items, bad, err
		default:
			items++
		}
	}
	return items, bad, nil
}

// A file that names a new model on each line does not fill the reader.
func TestModelsAreBounded(t *testing.T) {
	var text bytes.Buffer
	for i := range 2 * knownModels {
		fmt.Fprintf(&text, `{"prompt":"a","model":"m%d"}`+"\n", i)
	}
	r := NewReader(&text, Config{})
	if items, bad, err := through(r); err != nil || items != 2*knownModels || len(r.models) != knownModels {
		t.Errorf("%d items, %d known models, %v %v", items, len(r.models), bad, err)
	}
}

// one reads a text of one good line.
func one(t *testing.T, text string, cfg Config) Request {
	t.Helper()
	reqs, bad := read(t, text, cfg)
	if len(bad) > 0 || len(reqs) != 1 {
		t.Fatalf("%s: %d requests, complaints %v", text, len(reqs), bad)
	}
	return reqs[0]
}

// A BOM, CRLF, blank lines, white space around a line and a missing last line
// feed change nothing but line numbers.
func TestLinesAreReadAsMeant(t *testing.T) {
	text := "\xEF\xBB\xBF{\"prompt\":\"a\"}\r\n\r\n   \t\n  {\"prompt\":\"b\"} \t\r\n\n{\"prompt\":\"c\"}"
	reqs, bad := read(t, text, Config{DefaultModel: "m"})
	var lines []int
	for _, r := range reqs {
		lines = append(lines, r.Line)
	}
	if len(bad) > 0 || !slices.Equal(lines, []int{1, 4, 6}) {
		t.Errorf("lines %v, complaints %v", lines, bad)
	}
	for _, empty := range []string{"", "\n", "\xEF\xBB\xBF", "\r\n \n"} {
		if reqs, bad := read(t, empty, Config{}); len(reqs)+len(bad) > 0 {
			t.Errorf("%q: %v %v", empty, reqs, bad)
		}
	}
}

// How the input is cut into reads does not matter.
func TestReadsOfOneByte(t *testing.T) {
	text := "{\"prompt\":\"" + strings.Repeat("é", lines.ReadBuffer) + "\"}\n{x\n\n{\"prompt\":\"b\"}"
	want, _ := read(t, text, Config{DefaultModel: "m"})
	var got []Request
	for req, err := range NewReader(iotest.OneByteReader(strings.NewReader(text)), Config{DefaultModel: "m"}).All() {
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
	for _, limit := range []int{100, lines.ReadBuffer - 1, lines.ReadBuffer, 3*lines.ReadBuffer + 5} {
		cfg := Config{DefaultModel: "m", MaxLine: limit}
		reqs, bad := read(t, line(limit)+"\r\n"+line(limit+1)+"\n"+line(20), cfg)
		if len(reqs) != 2 || len(bad) != 1 || bad[0].Line != 2 || !errors.Is(bad[0], ErrTooLong) {
			t.Errorf("bound %d: %d requests, complaints %v", limit, len(reqs), bad)
		}
		reqs, bad = read(t, line(20)+strings.Repeat(" ", limit+lines.ReadBuffer)+"x\n"+line(20), cfg)
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
	r := NewReader(endless(100<<20), Config{DefaultModel: "m", MaxLine: 1 << 20})
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

// An input that breaks says so again and again, and its torn line is not a request.
func TestBrokenInputIsAnError(t *testing.T) {
	broken := errors.New("unexpected end of gzip stream")
	for _, cause := range []error{broken, io.ErrUnexpectedEOF, fmt.Errorf("decompress: %w", io.EOF)} {
		in := io.MultiReader(strings.NewReader("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}"), iotest.ErrReader(cause))
		r := NewReader(in, Config{Name: "p.gz", DefaultModel: "m"})
		must.Get(r.Next())(t)
		for range 2 {
			_, err := r.Next()
			if !errors.Is(err, cause) || lines.AtEnd(err) || !strings.Contains(err.Error(), "read p.gz after line 1") {
				t.Errorf("%v: got %v", cause, err)
			}
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
	reqs, _ := read(t, text.String(), Config{})
	for i, r := range reqs {
		body, meta := fmt.Sprintf(`{"messages":[],"model":"m%d"}`, i%3), fmt.Sprintf(`{"n":%d}`, i)
		if string(r.Body) != body || string(r.Metadata) != meta || r.ID != fmt.Sprintf("c%d", i) {
			t.Fatalf("request %d has changed: %+v %s", i, r, r.Body)
		}
	}
}

// Leaving the range over All early leaves the reader usable.
func TestAllCanBeLeft(t *testing.T) {
	r := NewReader(strings.NewReader("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n"), Config{DefaultModel: "m"})
	for range r.All() {
		break
	}
	if req, err := r.Next(); err != nil || req.Line != 2 {
		t.Errorf("after a break: %+v %v", req, err)
	}
}

// The prompts that the first command of the README runs are all good: 240 of them,
// in three forms, with and without ids.
func TestExamplePrompts(t *testing.T) {
	file := must.Get(os.Open("../../examples/prompts.jsonl"))(t)
	defer file.Close()
	forms, bare := map[Form]int{}, 0
	for req, err := range NewReader(file, Config{Name: file.Name(), DefaultModel: "m"}).All() {
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

// A Passing reader returns the same requests in every form, except for keys with NoKeys.
// Bad lines have their keys all the same.
func TestPassingRequestsAreTheSame(t *testing.T) {
	text := []byte(`{"custom_id":"a","body":{"messages":[],"n":1},"metadata":{"m":[1]}}
{"prompt":"one","id":7,"temperature":1}
{"model":"x","metadata":{"k":2},"messages":[{"role":"user","content":"é"}]}
{"model":"x","messages":[]}
{"model":"x","messages":[]}
{"prompt":
{"prompt":"` + strings.Repeat("long ", lines.KeepBuffer/4) + `"}
{"body":{"messages":[]}}`)
	cfg := Config{DefaultModel: "m", System: "be brief"}
	quick := cfg
	quick.Passing, quick.NoKeys = true, true
	r, q := NewReader(bytes.NewReader(text), cfg), NewReader(bytes.NewReader(text), quick)
	for n := 0; ; n++ {
		want, fault := r.Next()
		got, err := q.Next()
		if lines.AtEnd(fault) && lines.AtEnd(err) && n == 8 {
			return
		}
		var bad, same *LineError
		if errors.As(fault, &bad) && errors.As(err, &same) && bad.Key() == same.Key() && len(bad.Key()) == 32 {
			continue
		}
		if got.Key != "" || want.Key == "" {
			t.Errorf("keys %q and %q", got.Key, want.Key)
		}
		if want.Key = ""; fault != nil || err != nil || describe(got) != describe(want) {
			t.Fatalf("got  %s %v\nwant %s %v", describe(got), err, describe(want), fault)
		}
	}
}

// To look at a line costs no memory but for its id.
func TestPassingAllocations(t *testing.T) {
	line := []byte(`{"model":"m","metadata":{"a":1},"messages":[{"role":"user","content":"q"}]}` + "\n")
	r := NewReader(bytes.NewReader(bytes.Repeat(line, 2000)), Config{Passing: true, NoKeys: true})
	if n := testing.AllocsPerRun(1000, func() {
		must.Get(r.Next())(t)
	}); n > 1 {
		t.Errorf("%v allocations a line", n)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
