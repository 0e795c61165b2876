package gemini_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/gemini"
)

// One text goes to embedContent and several to batchEmbedContents, byte for byte.
func TestFromEmbeddings(t *testing.T) {
	for _, c := range []struct{ model, body, operation, want string }{
		{"m", `{"model":"m","input":"a\u00e9 \" b"}`, provider.EmbedContent, `{"content":{"parts":[{"text":"a\u00e9 \" b"}]}}`},
		{"models/m", `{"input":["a"],"dimensions":768,"encoding_format":"float"}`, provider.EmbedContent, `{"content":{"parts":[{"text":"a"}]},"embedContentConfig":{"outputDimensionality":768}}`},
		{
			"models/m", `{"input":["a","b"],"dimensions":768}`, provider.BatchEmbedContents,
			`{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]},"outputDimensionality":768},{"model":"models/m","content":{"parts":[{"text":"b"}]},"outputDimensionality":768}]}`,
		},
		{"a\"b", `{"input":["a","b"]}`, provider.BatchEmbedContents, `{"requests":[{"model":"models/a\"b","content":{"parts":[{"text":"a"}]}},{"model":"models/a\"b","content":{"parts":[{"text":"b"}]}}]}`},
	} {
		operation, body, err := gemini.Dialect{}.FromEmbeddings(provider.Request{Model: c.model, Body: []byte(c.body)})
		if err != nil || operation != c.operation || string(body) != c.want {
			t.Errorf("%s: %s %s %v", c.body, operation, body, err)
		}
	}
}

// What Gemini cannot say is refused by its path.
func TestFromEmbeddingsRefuses(t *testing.T) {
	for _, c := range []struct{ model, body, want string }{
		{"", `{"input":"a"}`, "model: is required: it is part of the URL"},
		{"m", `{"input":"a","encoding_format":"base64"}`, `encoding_format: is not "float"`},
		{"m", `{"input":"a","input_type":"search_query"}`, "input_type: has no counterpart"},
		{"m", `{"input":["a"` + strings.Repeat(`,"a"`, 100) + `]}`, "input: has more than 100 texts"},
	} {
		_, _, err := gemini.Dialect{}.FromEmbeddings(provider.Request{Model: c.model, Body: []byte(c.body)})
		var why *provider.Untranslatable
		if !errors.As(err, &why) || why.Dialect != "gemini" || why.Field+": "+why.Why != c.want {
			t.Errorf("%.60s: %v, want %s", c.body, err, c.want)
		}
	}
}
