package converse

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/headrace/headrace/provider/sim/face"
)

// Face is Bedrock's, of Converse and of InvokeModel for embeddings. The zero value is ready.
type Face struct{}

// Name returns the dialect's name.
func (Face) Name() string { return "converse" }

// Base is empty: clients have the whole path.
func (Face) Base() string { return "" }

// Find takes the id of the model out of the path as it was sent, where a slash in it is
// escaped.
func (Face) Find(r *http.Request) face.Errand {
	for _, operation := range []string{converse, stream, invoke} {
		if model, ok := modelOf(r.URL.EscapedPath(), operation); ok {
			return face.Errand{Aim: face.Ask, Operation: operation, Model: model}.ByMethod(r, http.MethodPost)
		}
	}
	return face.Errand{}
}

// The operations, as paths end in them.
const (
	converse = "/converse"
	stream   = "/converse-stream"
	invoke   = "/invoke"
)

func modelOf(path, operation string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "/model/")
	id, found := strings.CutSuffix(rest, operation)
	if !ok || !found || id == "" || strings.Contains(id, "/") {
		return "", false
	}
	model, err := url.PathUnescape(id)
	return model, err == nil
}

// Read reads a body as Bedrock does.
func (Face) Read(r *http.Request, e face.Errand, body string) face.Request {
	req := &request{operation: e.Operation}
	req.Model = e.Model
	req.readKey(r.Header)
	req.read(body)
	return req
}

// Models returns an empty page: Bedrock lists its models at another host, so Find never says List.
func (Face) Models([]string, face.Stamp) []byte { return []byte("{}") }

// Fault returns AWS's answer to an unknown operation, or to a body that is too large.
func (Face) Fault(status int, _ *http.Request, _ face.Stamp) face.Reply {
	if status == http.StatusRequestEntityTooLarge {
		return fault(status, "RequestEntityTooLargeException", "Request body is too large")
	}
	return fault(http.StatusNotFound, "UnknownOperationException", "")
}

// Mark sets the request's id, which is a UUID at AWS.
func (Face) Mark(h http.Header, _ *http.Request, s face.Stamp) {
	h["X-Amzn-Requestid"] = []string{fmt.Sprintf("00000000-0000-4000-8000-%012x", s.Serial&(1<<48-1))}
}
