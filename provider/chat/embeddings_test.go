package chat_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/chat"
)

// What a body for embeddings says is carried over as it stands, whatever its order, and what says
// nothing is left out.
func TestReadEmbeddings(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","input":"a\u00e9"}`:                                              `["a\u00e9"] 0 ""`,
		` {"input":["a","b"],"dimensions":256,"encoding_format":"float","user":null} `: `["a" "b"] 256 ""`,
		`{"input_type":"search_query","input":["a"],"dimensions":null}`:                `["a"] 0 "\"search_query\""`,
	} {
		e, err := chat.ReadEmbeddings("test", []byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got := fmt.Sprintf("%s %d %q", e.Inputs, e.Dimensions, e.InputType); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// What has no exact counterpart is refused by its path.
func TestReadEmbeddingsRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m"}`:                               "input: is missing",
		`{"input":null}`:                              "input: is missing",
		`{"input":[]}`:                                "input: is empty",
		`{"input":""}`:                                "input: is empty",
		`{"input":["a",""]}`:                          "input[1]: is empty",
		`{"input":[1,2]}`:                             "input[0]: is not a string",
		`{"input":["a",[1,2]]}`:                       "input[1]: is not a string",
		`{"input":{"text":"a"}}`:                      "input: is not a string",
		`{"input":"a","encoding_format":"base64"}`:    `encoding_format: is not "float"`,
		`{"input":"a","dimensions":0}`:                "dimensions: is not a whole number from 1 to 2147483647",
		`{"input":"a","dimensions":2.5}`:              "dimensions: is not a whole number from 1 to 2147483647",
		`{"input":"a","user":"u"}`:                    "user: has no counterpart",
		`{"input":"a","input":"b"}`:                   "input: stands twice",
		`{"input":"a","truncate":"END"}`:              "truncate: is not known",
		`{"input":"a","model":7}`:                     "model: is not a string",
		`{"input":"a","input_type":["search_query"]}`: "input_type: is not a string",
		`["a"]`: "body: is not an object",
		`{`:     "body: is not JSON: unexpected end of JSON input at byte 1",
	} {
		_, err := chat.ReadEmbeddings("test", []byte(body))
		var why *provider.Untranslatable
		if !errors.As(err, &why) || why.Dialect != "test" || why.Field+": "+why.Why != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// A bound on the number of texts is met or refused.
func TestEmbeddingsAtMost(t *testing.T) {
	e, err := chat.ReadEmbeddings("test", []byte(`{"input":["a","b"]}`))
	if err != nil || e.AtMost(2) != nil {
		t.Fatal(err, e.AtMost(2))
	}
	if err := e.AtMost(1); err == nil || err.Error() != "provider: translate to test: input: has more than 1 text" {
		t.Error(err)
	}
}
