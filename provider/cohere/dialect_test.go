package cohere_test

import (
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/cohere"
)

// A rerank is Cohere's own: its body goes out as it came.
func TestRerankGoesOutAsItIs(t *testing.T) {
	const body = ` {"query" : "q","documents":["\u00e9"]}`
	path, has := cohere.Dialect{}.Path(provider.Rerank, "m")
	if got, err := (cohere.Dialect{}).Body(provider.Request{Body: []byte(body)}); !has || path != "/v2/rerank" || err != nil || string(got) != body {
		t.Errorf("%s: %s, %v", path, got, err)
	}
}
