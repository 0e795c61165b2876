package prompts

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headrace/headrace/provider/rawjson"
)

// FuzzReader: whatever the file holds, each line that is not blank becomes one
// sendable request or one complaint, with ids and keys that are never alike.
func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"prompt\":\"a\"}\n{\"model\":\"m\",\"messages\":[],\"metadata\":{}}\r\n\n{x"))
	f.Add([]byte(`{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"input":["a"]}}`))
	f.Add([]byte("\xEF\xBB\xBF{\"id\":1,\"prompt\":\"\\\"\\\\\",\"system\":null,\"t\":[{}, 1 ]}\n{\"id\":1,\"prompt\":\"b\"}"))
	f.Add([]byte(`{"params":{},"custom_id":"a"}` + "\n" + strings.Repeat(" ", 300) + "\n\x00\xff"))
	f.Add([]byte(`{"key":"a","request":{"contents":[{"parts":[{"text":"h\u00e9"}]}],"generationConfig":{}}}` + "\n" + `{"request":{"contents":[],"model":"x"}}`))
	f.Add([]byte(`{"recordId":"a","modelInput":{"messages":[{"role":"user","content":[{"text":"a"}]}]}}` + "\n" + `{"modelInput":{"anthropic_version":"x","messages":[]}}`))
	f.Add([]byte(`{"model":"omni-moderation-latest","input":"a"}` + "\n" + `{"body":{"input":"a"},"url":"/v1/moderations"}` + "\n" + `{"custom_id":1,"params":{"background":true}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		const limit = 256
		r := NewReader(bytes.NewReader(text), Config{DefaultModel: "m", MaxLine: limit, Serves: Operations()})
		ids, keys, answered := map[string]bool{}, map[string]bool{}, 0
		for req, err := range r.All() {
			answered++
			var bad *LineError
			if errors.As(err, &bad) {
				continue
			}
			if err != nil && isPacked(text) {
				return // it is cut short or corrupt, which ends the input
			}
			if err != nil || ids[req.ID] || keys[req.Key] {
				t.Fatalf("request %+v, error %v", req, err)
			}
			ids[req.ID], keys[req.Key] = true, true
			checkRequest(t, req)
		}
		if want := filledLines(text); answered != want && !isPacked(text) {
			t.Errorf("%d answers to %d lines", answered, want)
		}
	})
}

// isPacked reports whether the reader takes the text for gzip or zstd.
func isPacked(text []byte) bool {
	for _, p := range packings {
		if bytes.HasPrefix(text, []byte(p.magic)) {
			return true
		}
	}
	return false
}

// checkRequest holds a request to what a provider and a result file need.
func checkRequest(t *testing.T, req Request) {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(req.Body, &fields); err != nil || !utf8.Valid(req.Body) {
		t.Fatalf("body %q: %v", req.Body, err)
	}
	var model string
	if req.Endpoint == GenerateContent || req.Endpoint == Converse {
		if model = req.Model; fields["model"] != nil || fields["modelId"] != nil {
			t.Fatalf("body %q names a model", req.Body)
		}
	} else if json.Unmarshal(fields["model"], &model) != nil {
		t.Fatalf("body %q does not name the model %q", req.Body, req.Model)
	}
	if model != req.Model || model == "" {
		t.Fatalf("body %q does not name the model %q", req.Body, req.Model)
	}
	if string(fields["stream"]) == "true" || !slices.Contains(Operations(), req.Endpoint) {
		t.Fatalf("request %+v", req)
	}
	if req.Metadata != nil && !json.Valid(req.Metadata) {
		t.Fatalf("metadata %q", req.Metadata)
	}
}

// filledLines counts lines as plainly as can be.
func filledLines(text []byte) (n int) {
	text = bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF"))
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if len(bytes.Trim(line, " \t\r\n")) > 0 {
			n++
		}
	}
	return n
}

// FuzzValidJSON: the fast check agrees with encoding/json on everything.
func FuzzValidJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,"\u00e9\n",true,null]}`, `01`, `"\x"`, `[1,]`, "\"\x01\"", `{"a" 1}`, ` `, ``, "1\x00", "\"\xff\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := rawjson.Valid(b), json.Valid(b); got != want {
			t.Errorf("%q: valid is %t, encoding/json says %t", b, got, want)
		}
	})
}
