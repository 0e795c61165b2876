package cohere_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/cohere"
)

// Texts go to Cohere with what they are for, byte for byte, and are never cut.
func TestFromEmbeddings(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"x","input":"a\u00e9","input_type":"search_query"}`:                                          `{"model":"embed-v4.0","texts":["a\u00e9"],"input_type":"search_query","embedding_types":["float"],"truncate":"NONE"}`,
		`{"input_type":"clustering","input":["a","b"],"dimensions":256,"encoding_format":"float","user":null}`: `{"model":"embed-v4.0","texts":["a","b"],"input_type":"clustering","embedding_types":["float"],"truncate":"NONE","output_dimension":256}`,
	} {
		operation, got, err := cohere.Dialect{}.FromEmbeddings(provider.Request{Model: "embed-v4.0", Body: []byte(body)})
		if err != nil || operation != provider.CohereEmbed || string(got) != want {
			t.Errorf("%s: %s %s %v", body, operation, got, err)
		}
	}
}

// What Cohere cannot be told exactly is refused by its path.
func TestFromEmbeddingsRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"input":"a"}`: "input_type: is missing, and one is demanded, such as search_document or search_query",
		`{"input":"a","input_type":"search_query","encoding_format":"base64"}`:          `encoding_format: is not "float"`,
		`{"input_type":"search_query","input":["a"` + strings.Repeat(`,"a"`, 96) + `]}`: "input: has more than 96 texts",
	} {
		_, _, err := cohere.Dialect{}.FromEmbeddings(provider.Request{Model: "m", Body: []byte(body)})
		var why *provider.Untranslatable
		if !errors.As(err, &why) || why.Dialect != "cohere" || why.Field+": "+why.Why != want {
			t.Errorf("%.60s: %v, want %s", body, err, want)
		}
	}
}

// A rerank is Cohere's own: its body goes out as it came.
func TestRerankGoesOutAsItIs(t *testing.T) {
	const body = ` {"query" : "q","documents":["\u00e9"]}`
	path, has := cohere.Dialect{}.Path(provider.Rerank, "m")
	if got, err := (cohere.Dialect{}).Body(provider.Request{Body: []byte(body)}); !has || path != "/v2/rerank" || err != nil || string(got) != body {
		t.Errorf("%s: %s, %v", path, got, err)
	}
}
