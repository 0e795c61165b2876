package converse_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/converse"
)

// The model says in which words its embeddings are asked for, wherever it stands in an id.
func TestFromEmbeddings(t *testing.T) {
	const texts = `{"texts":["a","b"],"input_type":"search_query","embedding_types":["float"],"truncate":"NONE"`
	for _, c := range []struct{ model, body, want string }{
		{"amazon.titan-embed-text-v2:0", `{"model":"x","input":"a\u00e9 \""}`, `{"inputText":"a\u00e9 \""}`},
		{"arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0", `{"input":["a"],"dimensions":256,"encoding_format":"float"}`, `{"inputText":"a","dimensions":256}`},
		{"us.cohere.embed-v4:0", `{"input":["a","b"],"input_type":"search_query","dimensions":512}`, texts + `,"output_dimension":512}`},
		{"cohere.embed-english-v3", `{"input":["a","b"],"input_type":"search_query"}`, texts + `}`},
		{"cohere.embed-multilingual-v3", `{"input":["a","b"],"input_type":"search_query"}`, texts + `}`},
	} {
		operation, body, err := converse.Dialect{}.FromEmbeddings(provider.Request{Model: c.model, Body: []byte(c.body)})
		if err != nil || operation != provider.Invoke || string(body) != c.want {
			t.Errorf("%s: %s: %s %s %v", c.model, c.body, operation, body, err)
		}
	}
}

// What a model cannot be told is refused by its path, and so is a model that is not known to embed.
func TestFromEmbeddingsRefuses(t *testing.T) {
	const titan, cohere3 = "amazon.titan-embed-text-v2:0", "cohere.embed-english-v3"
	for _, c := range []struct{ model, body, want string }{
		{titan, `{"input":["a","b"]}`, "input: has more than 1 text"},
		{titan, `{"input":"a","input_type":"search_query"}`, "input_type: has no counterpart"},
		{titan, `{"input":"a","encoding_format":"base64"}`, `encoding_format: is not "float"`},
		{"cohere.embed-v4:0", `{"input":"a"}`, "input_type: is missing, and one is demanded, such as search_document or search_query"},
		{cohere3, `{"input":"a","input_type":"search_query","dimensions":512}`, "dimensions: has no counterpart with this model"},
		{cohere3, `{"input_type":"search_query","input":["a"` + strings.Repeat(`,"a"`, 96) + `]}`, "input: has more than 96 texts"},
		{"amazon.nova-lite-v1:0", `{"input":"a"}`, "model: is not one of amazon.titan-embed-text-v2, cohere.embed-v4, cohere.embed-english-v3, cohere.embed-multilingual-v3"},
		{"", `{"input":"a"}`, "model: is not one of amazon.titan-embed-text-v2, cohere.embed-v4, cohere.embed-english-v3, cohere.embed-multilingual-v3"},
	} {
		_, _, err := converse.Dialect{}.FromEmbeddings(provider.Request{Model: c.model, Body: []byte(c.body)})
		var why *provider.Untranslatable
		if !errors.As(err, &why) || why.Dialect != "converse" || why.Field+": "+why.Why != c.want {
			t.Errorf("%s: %.60s: %v, want %s", c.model, c.body, err, c.want)
		}
	}
}

// What a model has read is in a header; of Titan it is in the body, too. What is no count is none.
func TestUsageOfEmbeddings(t *testing.T) {
	const vectors, titan = `{"embeddings":{"float":[[1]]}}`, `{"embedding":[1],"inputTextTokenCount":7}`
	for _, c := range []struct {
		header, body string
		input        int64
		told         bool
	}{
		{"5", vectors, 5, true},
		{"5", titan, 5, true},
		{"", titan, 7, true},
		{"", vectors, 0, false},
		{"-1", vectors, 0, false},
		{"many", vectors, 0, false},
		{"", `{"embedding":[1],"inputTextTokenCount":-7}`, 0, false},
	} {
		h := http.Header{}
		if c.header != "" {
			h.Set("X-Amzn-Bedrock-Input-Token-Count", c.header)
		}
		reply, err := converse.Dialect{}.Answer(200, h, []byte(c.body), nil)
		if err != nil || reply.Usage != (provider.Usage{InputTokens: c.input}) || reply.HasUsage != c.told {
			t.Errorf("%+v: %+v, %v, %v", c, reply.Usage, reply.HasUsage, err)
		}
	}
}
