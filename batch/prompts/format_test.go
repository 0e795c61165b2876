package prompts

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/internal/must"
)

// bodies gives what is sent for each item of a text.
func bodies(reqs []Request) (all []string) {
	for _, r := range reqs {
		all = append(all, string(r.Body))
	}
	return all
}

const twoPrompts = `{"prompt":"a"}` + "\n" + `{"prompt":"b"}` + "\n"

func packed(t *testing.T, text string) map[string][]byte {
	t.Helper()
	var zip, std bytes.Buffer
	gz := gzip.NewWriter(&zip)
	zs := must.Get(zstd.NewWriter(&std))(t)
	_, err1 := io.WriteString(gz, text)
	_, err2 := io.WriteString(zs, text)
	must.Do(t, errors.Join(err1, err2, gz.Close(), zs.Close()))
	return map[string][]byte{"gzip": zip.Bytes(), "zstd": std.Bytes()}
}

// A packed input reads as what it holds.
func TestPackedInput(t *testing.T) {
	for name, data := range packed(t, twoPrompts) {
		reqs, bad := read(t, string(data), Config{DefaultModel: "m"})
		if len(bad) > 0 || len(reqs) != 2 || reqs[1].Line != 2 {
			t.Errorf("%s: %v %v", name, reqs, bad)
		}
	}
}

// A packed input that was cut short at any byte, or damaged, is named, again and
// again; it never ends as if it were whole.
func TestPackedInputCutShort(t *testing.T) {
	for name, data := range packed(t, strings.Repeat(twoPrompts, 100)) {
		for n := 4; n < len(data); n++ {
			r := NewReader(bytes.NewReader(data[:n]), Config{Name: "p." + name, DefaultModel: "m"})
			_, _, err := through(r)
			if _, again := r.Next(); !errors.Is(err, ErrPacked) || again != err || !strings.Contains(err.Error(), "p."+name) { //nolint:errorlint // the same
				t.Fatalf("%s, %d of %d bytes: %v", name, n, len(data), err)
			}
		}
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
		if _, _, err := through(NewReader(bytes.NewReader(data), Config{DefaultModel: "m"})); !errors.Is(err, ErrPacked) {
			t.Errorf("%s, damaged: %v", name, err)
		}
	}
}

// An Anthropic batch line goes out with the bytes of its params, where the provider
// has the endpoint.
func TestAnthropicBatchLine(t *testing.T) {
	const params = `{ "max_tokens":5,"messages":[{"role":"user","content":"hi"}], "model":"c" }`
	req := one(t, `{"custom_id":"a","params":`+params+`}`, Config{Serves: []string{Messages}})
	if req.Form != FormAnthropicBatch || req.Endpoint != Messages || string(req.Body) != params || req.Model != "c" || req.ID != "a" {
		t.Errorf("%+v", req)
	}
	_, bad := read(t, `{"prompt":"hi","model":"c"}`+"\n"+`{"custom_id":"a","params":[]}`, Config{Serves: []string{Messages}})
	if len(bad) != 2 || !errors.Is(bad[0], ErrUnsupported) || !errors.Is(bad[1], ErrShape) {
		t.Error(bad)
	}
}

// A text holds a prompt on each line, whatever characters are in it.
func TestTextFormat(t *testing.T) {
	reqs, bad := read(t, "say \"hi\" <b>\r\n\n{\"prompt\":1}\n\\", Config{DefaultModel: "m", Format: FormatText})
	want := []string{`say \"hi\" <b>`, `{\"prompt\":1}`, `\\`}
	for i, w := range want {
		want[i] = `{"model":"m","messages":[{"role":"user","content":"` + w + `"}]}`
	}
	if len(bad) > 0 || !slices.Equal(bodies(reqs), want) || reqs[1].Line != 3 {
		t.Errorf("%v %q", bad, bodies(reqs))
	}
}

// A row is an item: its own columns mean what the fields of a prompt line mean, the
// others come back with the result. Cells may hold line breaks; lines are counted.
func TestCSVFormat(t *testing.T) {
	text := "\xEF\xBB\xBFid,prompt,system,city\r\n1,\"two\nlines, \"\"q\"\"\",s,Ulm\r\n\r\n2,short\r\n3,\"bad\" cell,,\n4,last,,\n5,\"open"
	reqs, bad := read(t, text, Config{DefaultModel: "m", Format: FormatCSV})
	want := []string{
		`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"two\nlines, \"q\""}]}`,
		`{"model":"m","messages":[{"role":"user","content":"last"}]}`,
	}
	if !slices.Equal(bodies(reqs), want) || reqs[0].ID != "1" || string(reqs[0].Metadata) != `{"city":"Ulm"}` || reqs[0].Line != 2 || reqs[1].Line != 7 {
		t.Errorf("%q %+v", bodies(reqs), reqs)
	}
	var at []int
	for _, b := range bad {
		at = append(at, b.Line)
	}
	if !slices.Equal(at, []int{5, 6, 8}) {
		t.Errorf("complaints %v", bad)
	}
}

// A quote that is never closed costs no more memory than a line may, and what
// follows is still read.
func TestCSVOpenQuoteIsBounded(t *testing.T) {
	text := "prompt\n\"" + strings.Repeat("aaaaaaaaa\n", 50) + "b\nc\n"
	reqs, bad := read(t, text, Config{DefaultModel: "m", Format: FormatCSV, MaxLine: 100})
	if len(bad) != 1 || !errors.Is(bad[0], ErrTooLong) || bad[0].Line != 2 || reqs[len(reqs)-1].Line != 53 {
		t.Errorf("%v, %d requests", bad, len(reqs))
	}
}

// A header that cannot be used ends the reading, and is named: it is no bad line, after
// which one could go on.
func TestCSVHeader(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n1,2\n": "no column is named prompt", "prompt,prompt\n": "one name", "prompt,\n": "column 2 has no name",
		"5\" disk,prompt\na,b\n": "bare", "p\x00r\x00\nprompt\n": "NUL byte", strings.Repeat("a", 101) + "\nprompt\nx\n": "longer than 100",
		"\"prompt\n1\n2": "lines 1 to 3 are one row",
	} {
		r := NewReader(strings.NewReader(text), Config{Name: "p.csv", Format: FormatCSV, MaxLine: 100})
		ended := 0
		for _, err := range r.All() {
			if ended++; ended > 1 || !errors.Is(err, ErrHeader) || !strings.Contains(err.Error(), "p.csv:1: ") || !strings.Contains(err.Error(), want) {
				t.Fatalf("%q, error %d: %v", text, ended, err)
			}
		}
		if _, again := r.Next(); ended != 1 || !errors.Is(again, ErrHeader) {
			t.Errorf("%q: %d errors, then %v", text, ended, again)
		}
	}
	if reqs, bad := read(t, " id , prompt \n1,a\n", Config{DefaultModel: "m", Format: FormatCSV}); len(bad) > 0 || len(reqs) != 1 || reqs[0].ID != "1" {
		t.Errorf("%v %v", reqs, bad)
	}
}

// A quote within a cell is no beginning of one: that row is named, and no other row is
// part of it.
func TestCSVBareQuote(t *testing.T) {
	text := "id,prompt\na,one\nb,a 5\" disk\nc,three\nd,\"four\ne,five\nf,\"six\"\ng,seven\n"
	reqs, bad := read(t, text, Config{DefaultModel: "m", Format: FormatCSV})
	var ids string
	for _, r := range reqs {
		ids += r.ID
	}
	if ids != "acg" || len(bad) != 2 || bad[0].Line != 3 || !strings.Contains(bad[0].Reason, "bare") {
		t.Fatalf("%s, %v", ids, bad)
	}
	if bad[1].Line != 5 || !strings.Contains(bad[1].Reason, "lines 5 to 7 are one row") {
		t.Errorf("what a quote has taken is not named: %v", bad[1])
	}
}

// The memory of one long row is not held while short ones follow.
func TestLongRowsMemoryIsGivenBack(t *testing.T) {
	text := "prompt\n\"" + strings.Repeat("aaaaaaaaa\n", lines.KeepBuffer/5) + "\"\nb\n"
	r := NewReader(strings.NewReader(text), Config{DefaultModel: "m", Format: FormatCSV})
	for range 2 {
		must.Get(r.Next())(t)
	}
	if kept := cap(r.rows.text); kept > lines.KeepBuffer {
		t.Errorf("%d bytes held", kept)
	}
}

var whiteLine = regexp.MustCompile(`(^|\n)[ \t\r]+(\n|$)`)

// FuzzCSV: the rows are those of encoding/csv, each a request or a complaint.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a\n\"b\nc\"\r\n\r\n5\" disk\n\"x\"y\nz,z\n", "\"open\n\n", "\r\"a\"\r", "\"a\r\n\n  b\"\n\"\"\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(text, "\xEF\xBB\xBF") || whiteLine.MatchString(text) {
			return // a mark, and lines of white space between rows, encoding/csv does not know
		}
		got := newRows(lines.New(strings.NewReader(text), len(text)), len(text))
		want := csv.NewReader(strings.NewReader(text))
		want.FieldsPerRecord = -1
		for {
			_, end := got.next()
			cells, err := want.Read()
			if (end == nil) != (cells != nil || err != nil && !lines.AtEnd(err)) {
				t.Fatalf("%q: %v, want %v %v", text, end, cells, err)
			}
			if end != nil {
				return
			}
			if (got.fault == nil) != (err == nil) || err == nil && !slices.Equal(got.cells, cells) {
				t.Fatalf("%q: %q %v, want %q %v", text, got.cells, got.fault, cells, err)
			}
		}
	})
}

// A template makes prompts of any fields; a line that lacks one is named, and so is
// one whose prompt would have no end.
func TestTemplate(t *testing.T) {
	tmpl, err := ParseTemplate(`{{.city}}: {{range .years}}{{.}} {{end}}`)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{DefaultModel: "m", Template: tmpl, MaxLine: 400}
	text := `{"id":7,"city":"Ulm <&>","years":[1.50,2],"body":1}` + "\n" + `{"city":"Bonn"}` + "\n" + `{"city":"x","years":400}` + "\n" + `{"city`
	reqs, bad := read(t, text, cfg)
	want := `{"model":"m","messages":[{"role":"user","content":"Ulm <&>: 1.50 2 "}]}`
	if len(reqs) != 1 || string(reqs[0].Body) != want || reqs[0].ID != "7" || reqs[0].Form != FormTemplate {
		t.Fatalf("%q %+v", bodies(reqs), reqs)
	}
	if len(bad) != 3 || !errors.Is(bad[0], ErrTemplate) || bad[0].Line != 2 || !strings.Contains(bad[0].Reason, "years") || !errors.Is(bad[1], ErrTemplate) || !errors.Is(bad[2], ErrNotJSON) {
		t.Error(bad)
	}
	cfg.Format = FormatCSV
	reqs, bad = read(t, "city,years\nUlm,\n", cfg)
	if len(reqs) != 0 || len(bad) != 1 { // a text cannot be ranged over
		t.Errorf("%v %v", reqs, bad)
	}
	if cfg.Template, err = ParseTemplate(`{{.prompt}} in {{.city}}`); err != nil {
		t.Fatal(err)
	}
	req := one(t, "prompt,city\nrain,Ulm\n", cfg)
	if !strings.Contains(string(req.Body), `"rain in Ulm"`) || req.Metadata != nil {
		t.Errorf("%s", req.Body)
	}
}

// A template that asks for what could read files or run commands does not parse;
// one that writes without end is stopped at the length of a line.
func TestHostileTemplates(t *testing.T) {
	for _, text := range []string{`{{readFile "/etc/passwd"}}`, `{{env "HOME"}}`, `{{exec "id"}}`, `{{template "x"}`} {
		if _, err := ParseTemplate(text); err == nil {
			t.Errorf("%s parses", text)
		}
	}
	tmpl := must.Get(ParseTemplate(`{{define "x"}}aaaaaaaa{{template "x" .}}{{end}}{{template "x" .}}`))(t)
	_, bad := read(t, `{}`, Config{Template: tmpl, DefaultModel: "m", MaxLine: 1000})
	if len(bad) != 1 || !strings.Contains(bad[0].Reason, errPromptTooLong.Error()) {
		t.Errorf("got %v", bad)
	}
}

// A limit counts requests, not lines.
func TestLimit(t *testing.T) {
	reqs, bad := read(t, "\n{x\n"+twoPrompts+twoPrompts, Config{DefaultModel: "m", Limit: 3})
	if len(reqs) != 3 || len(bad) != 1 {
		t.Errorf("%d requests, %v", len(reqs), bad)
	}
}
