package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// Results and failures are read off the same file, with all that a reader of it sums up.
func TestParseResultsAndFailures(t *testing.T) {
	result, failure, unknown, cost := nativeLine(7), savedLine(8), savedLine(9), 0.000012
	failure.Response, failure.Error = nil, &Failure{Code: "time\"out", Message: "no\nanswer"}
	failure.Headrace.Attempts, failure.Headrace.Simulated = 5, true
	var p Parser
	for _, c := range []struct {
		line Line
		want Entry
	}{
		{result, Entry{
			Line: 7, Attempts: 2, CostUSD: &cost,
			Usage:    Usage{InputTokens: 9, OutputTokens: 12, CachedTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 5},
			Doubtful: Doubtful{Calls: 2, USD: 0.5, Usage: Usage{InputTokens: 6, OutputTokens: 7, CachedTokens: 1, CacheWriteTokens: 2, ReasoningTokens: 3}},
		}},
		{failure, Entry{Line: 8, Failed: true, Code: "time\"out", Attempts: 5, Simulated: true}},
		{unknown, Entry{Line: 9}},
	} {
		c.want.Key = c.line.Headrace.Key
		if got, err := p.Parse(AppendLine(nil, &c.line)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, c.want)
		}
	}
}

// What is not to the byte as it was written is no line.
func TestParseRefusesWhatIsDamaged(t *testing.T) {
	l := nativeLine(7)
	text := AppendLine(nil, &l)
	var p Parser
	for i := range text {
		for bit := range 8 {
			damaged := append([]byte(nil), text...)
			damaged[i] ^= 1 << bit
			if _, err := p.Parse(damaged); !errors.Is(err, ErrDamaged) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
		if _, err := p.Parse(text[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d bytes of it: %v", i, err)
		}
	}
	l.Headrace.Line = 0
	if _, err := p.Parse(AppendLine(nil, &l)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a line without its number: %v", err)
	}
}

// A line whose sum holds has valid numbers; otherwise it is not a line of ours.
func TestParseRefusesWhatIsNoNumber(t *testing.T) {
	l := nativeLine(7)
	text := string(AppendLine(nil, &l))
	body := text[:strings.LastIndex(text, sumBegins)]
	var p Parser
	for number, other := range map[string]string{
		`"attempts":2`: `"attempts":2.5`, `"line":7`: `"line":"7"`, `"cost_usd":0.000012`: `"cost_usd":true`,
		`"cached_tokens":3`: `"cached_tokens":1e99`, `"x"`: `"x"`,
	} {
		changed := []byte(strings.Replace(body, number, other, 1))
		changed = append(appendSum(changed, changed), sumEnds[1:]...)
		if _, err := p.Parse(changed); errors.Is(err, ErrDamaged) != (number != other) {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// A file that is made anew takes the old one's place when it is whole, or not at all.
func TestReplace(t *testing.T) {
	path := writeFile(t, "old")
	cause := &fs.PathError{Op: "read", Path: "elsewhere", Err: fs.ErrNotExist}
	if err := Replace(path, func(out *bufio.Writer) error { _, _ = out.WriteString("new"); return cause }); err != cause || textOf(t, path) != "old" { //nolint:errorlint // it is to be the very same
		t.Errorf("%v, %q", err, textOf(t, path))
	}
	if err := Replace(path, func(out *bufio.Writer) error { _, err := out.WriteString("new"); return err }); err != nil || textOf(t, path) != "new" {
		t.Errorf("%v, %q", err, textOf(t, path))
	}
	nowhere := filepath.Join(path, "x")
	if err := Replace(nowhere, func(*bufio.Writer) error { return nil }); err == nil || !strings.HasPrefix(err.Error(), "journal: write "+nowhere) {
		t.Error(err)
	}
}

func BenchmarkParse(b *testing.B) {
	l := nativeLine(7)
	text := AppendLine(nil, &l)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var p Parser
	for b.Loop() {
		must.Get(p.Parse(text))(b)
	}
}

// strictLine is a line of OpenAI's offline-batch output as its documentation lists
// the fields: those three and no other, but for our own under headrace.
type strictLine struct {
	ID       string `json:"id"`
	CustomID string `json:"custom_id"`
	Response *struct {
		StatusCode int             `json:"status_code"`
		RequestID  string          `json:"request_id"`
		Body       json.RawMessage `json:"body"`
	} `json:"response"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Headrace json.RawMessage `json:"headrace"`
}

// Whatever reads OpenAI's offline-batch files, by the letter, reads ours: answers,
// failures that the provider explained, and failures without an answer.
func TestFilesReadBackStrictly(t *testing.T) {
	blank := LineOf("a", Headrace{Line: 1, Model: "m", Key: "00112233445566778899aabbccddeeff"})
	answered, refused, lost := blank, blank, blank
	answered.Response = &Response{StatusCode: 200, RequestID: "req_1", Body: []byte("{\n \"choices\": []\n}")}
	refused.Response = &Response{StatusCode: 400, RequestID: "req_2", Body: []byte(`{"error":{"message":"no"}}`)}
	refused.Error = &Failure{Code: "invalid", Message: "no"}
	lost.Error = &Failure{Code: "timeout", Message: "no answer"}
	var file []byte
	for _, l := range []*Line{&answered, &refused, &lost} {
		file = AppendLine(file, l)
	}
	decoder := json.NewDecoder(bytes.NewReader(file))
	decoder.DisallowUnknownFields()
	var lines []strictLine
	for {
		var l strictLine
		if err := decoder.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 3 || bytes.Count(file, []byte("\n")) != 3 {
		t.Fatalf("%d lines in %q", len(lines), file)
	}
	for i, l := range lines {
		if l.ID == "" || l.CustomID != "a" || (l.Error == nil) != (i == 0) || (l.Response == nil) != (i == 2) {
			t.Errorf("line %d: %+v", i, l)
		}
	}
}
