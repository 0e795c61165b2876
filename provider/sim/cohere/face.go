package cohere

import (
	"fmt"
	"net/http"

	"github.com/headrace/headrace/provider/sim/face"
)

// Face is Cohere's, of rerank and embeddings. The zero value is ready.
type Face struct{}

// The operations, spelled as their paths.
const (
	rerank = "/v2/rerank"
	embed  = "/v2/embed"
	models = "/v1/models"
)

// Name returns the dialect's name.
func (Face) Name() string { return "cohere" }

// Base is empty: clients have the whole path.
func (Face) Base() string { return "" }

// Find knows Cohere's paths.
func (Face) Find(r *http.Request) face.Errand {
	switch path := r.URL.Path; path {
	case rerank, embed:
		return face.Errand{Aim: face.Ask, Operation: path}.ByMethod(r, http.MethodPost)
	case models:
		return face.Errand{Aim: face.List}.ByMethod(r, http.MethodGet)
	}
	return face.Errand{}
}

// Read reads a body as Cohere does.
func (Face) Read(r *http.Request, e face.Errand, body string) face.Request {
	req := &request{operation: e.Operation, key: face.Bearer(r.Header)}
	if e.Aim == face.Ask {
		req.read(body)
	}
	return req
}

// Models returns a page with all models.
func (Face) Models(names []string, _ face.Stamp) []byte {
	if len(names) == 0 {
		names = []string{"sim"}
	}
	b := []byte(`{"models":[`)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":%s,"endpoints":["rerank","embed"],"finetuned":false,"context_length":4096}`, face.Quote(name))
	}
	return append(b, `]}`...)
}

// Fault answers in Cohere's words.
func (Face) Fault(status int, r *http.Request, s face.Stamp) face.Reply {
	switch status {
	case http.StatusMethodNotAllowed:
		return refusal(status, "method not allowed", s)
	case http.StatusRequestEntityTooLarge:
		return refusal(status, "request body is too large", s)
	}
	return refusal(status, "the requested path '"+r.URL.Path+"' was not found", s)
}

// Mark does nothing: an error names its request in its body.
func (Face) Mark(http.Header, *http.Request, face.Stamp) {}
