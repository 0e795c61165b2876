package converse_test

import (
	"strings"
	"testing"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/simtest"
)

const (
	titan  = "/model/amazon.titan-embed-text-v2%3A0/invoke"
	cohere = "/model/cohere.embed-v4%3A0/invoke"
)

// Vectors are the texts' own, in the words of the model's maker, and a header counts the tokens read.
func TestEmbeddings(t *testing.T) {
	s := server(sim.Config{Models: []string{"amazon.titan-embed-text-v2:0", "cohere.embed-v4:0"}})
	one := simtest.Ask(t, s, titan, `{"inputText":"hello"}`, "Authorization", "Bearer k")
	if one.Status != 200 || float32(one.Body.Get("embedding.0").Num) != sim.Embedding("hello")[0] || one.Body.Get("inputTextTokenCount").Num != 2 || one.Header.Get("X-Amzn-Bedrock-Input-Token-Count") != "2" {
		t.Errorf("%d %v %s", one.Status, one.Header, one.Body.Raw)
	}
	two := simtest.Ask(t, s, cohere, `{"texts":["a","hello"],"input_type":"clustering"}`, "Authorization", "Bearer k")
	if two.Body.Get("embeddings.float.1").Raw != one.Body.Get("embedding").Raw || two.Body.Get("inputTextTokenCount").Exists() || two.Header.Get("X-Amzn-Bedrock-Input-Token-Count") != "2" {
		t.Errorf("%d %v %s", two.Status, two.Header, two.Body.Raw)
	}
	if charged := server(sim.Config{TPM: 100}); simtest.Ask(t, charged, titan, `{"inputText":"hello"}`, "Authorization", "Bearer k").Status != 200 {
		t.Error("what is only read is charged for output")
	}
}

// What a model's maker would refuse is refused.
func TestEmbeddingsAreChecked(t *testing.T) {
	s := server(sim.Config{})
	for _, c := range []struct{ path, body, says string }{
		{titan, `{}`, "[inputText]"},
		{titan, `{"inputText":["a"]}`, "[inputText]"},
		{titan, `{"texts":["a"],"input_type":"clustering"}`, "[inputText]"},
		{cohere, `{"texts":["a"]}`, "[input_type]"},
		{cohere, `{"texts":[],"input_type":"clustering"}`, "#/texts"},
		{cohere, `{"inputText":"a","input_type":"clustering"}`, "#/texts"},
		{cohere, `{"input_type":"clustering","texts":["a"` + strings.Repeat(`,"a"`, 96) + `]}`, "expected 1 to 96 texts"},
	} {
		if a := simtest.Ask(t, s, c.path, c.body, "Authorization", "Bearer k"); a.Status != 400 || named(a) != "ValidationException" || !strings.Contains(a.Body.Get("message").Str, c.says) {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, a.Status, a.Body.Raw)
		}
	}
}
