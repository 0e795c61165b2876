package stream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/stream"
)

// Lines, fields and events are those of the standard, wherever the bytes are split; the last
// event counts although nothing ends it.
func TestSSE(t *testing.T) {
	for given, want := range map[string]string{
		"":                                    "",
		"\n\n\n":                              "",
		"data: a\n\n":                         "[|a]",
		"data:a\n\ndata:  b\n\n":              "[|a][| b]",
		"data: a\r\n\ndata: b\r\rdata: c\n\r": "[|a][|b][|c]",
		"data: a\r\n\r\ndata: b":              "[|a][|b]",
		"data: a\ndata: b\ndata\n\n":          "[|a\nb\n]",
		"data\n\n":                            "[|]",
		"event: x\n\ndata: a\n\n":             "[|a]",
		"event: x\nid: 7\nretry: 9\ndata: a\n\ndata: b\n\n":         "[x|a][|b]",
		": a comment\ndata: a\n: another\n\n":                       "[|a]",
		"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n": "[|a][|c]",
		"dat: a\ndatas: b\nDATA: c\n\n":                             "",
	} {
		for _, size := range []int{1, 2, 3, len(given) + 1} {
			var s stream.SSE
			var got strings.Builder
			take := func(e stream.Event) error {
				_, err := fmt.Fprintf(&got, "[%s|%s]", e.Name, e.Data)
				return err
			}
			for rest := given; rest != ""; {
				n := min(size, len(rest))
				must.Do(t, s.Write([]byte(rest[:n]), take))
				rest = rest[n:]
			}
			if err := s.Close(take); err != nil || got.String() != want || s.Buffered() != 0 {
				t.Errorf("%q in pieces of %d: %q, want %q; %d bytes held, %v", given, size, got.String(), want, s.Buffered(), err)
			}
		}
	}
}

// Values grow with each piece, and pieces that do not go together are an error.
func TestValues(t *testing.T) {
	whole := func(name []byte) bool { return string(name) == "id" }
	for want, pieces := range map[string][]string{
		`{"a":"xy","id":"2"}`:   {`{"a":"x","id":"1"}`, `{"a":"y","id":"2"}`},
		`{"a":null}`:            {`{"a":null}`, `{"a":null}`},
		`{"a":"x"}`:             {`{"a":null}`, `{"a":"x"}`, `{"a":null}`},
		`{"a":[1,{"b":2},"c"]}`: {`{"a":[1]}`, `{"a":[{"b":2},"c"]}`, `{"a":[]}`},
		`{"a":[{"index":0,"t":"y"},{"index":1,"t":"xz"}]}`: {`{"a":[{"index":1,"t":"x"}]}`, `{"a":[{"index":0,"t":"y"},{"index":1,"t":"z"}]}`},
		`{"a":{"b":"cd"},"n":2}`:                           {`{"a":{"b":"c"},"n":1}`, `{"a":{"b":"d"},"n":2}`},
		`{"id":"1"}`:                                       {`{"id":"1"}`, `{"id":""}`, `{"id":null}`},
		"error: two texts, an object":                      {`{"a":"x"}`, `{"a":{}}`},
		"error: a list, a text":                            {`{"a":[1]}`, `{"a":"x"}`},
		"error: elements, some with index":                 {`{"a":[{"index":0}]}`, `{"a":[7]}`},
		"error: elements, some without one":                {`{"a":[7]}`, `{"a":[{"index":0}]}`},
	} {
		var b stream.Builder
		var v stream.Value
		for _, piece := range pieces {
			b.Merge(&v, []byte(piece), whole)
		}
		got := string(v.AppendTo(nil))
		if b.Err() != nil {
			got = "error"
		}
		if head, _, _ := strings.Cut(want, ": "); got != want && (got != "error" || head != got) {
			t.Errorf("%q: %s, %v", pieces, got, b.Err())
		}
	}
	var b stream.Builder
	var v stream.Value
	b.Set(&v, []byte(`{"list":[ ],"object":{"a":1}}`))
	b.Push(b.Member(&v, []byte("list")), []byte("1"))
	b.Set(b.Member(b.Member(&v, []byte("object")), []byte("b")), []byte("2"))
	if got := string(v.AppendTo(nil)); got != `{"list":[1],"object":{"a":1,"b":2}}` || b.Err() != nil {
		t.Errorf("%s, %v", got, b.Err())
	}
}
