package anthropic

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider/sim/face"
)

// Face is Anthropic's. The zero value is ready.
type Face struct{}

// The doors through which a request came.
const (
	ownDoor    = "own"    // Anthropic's
	cloudDoor  = "cloud"  // another's, with the path below /anthropic
	vertexDoor = "vertex" // Google's
)

// Name returns the dialect's name.
func (Face) Name() string { return "anthropic" }

// Base is empty: clients have the whole path.
func (Face) Base() string { return "" }

// Find knows Anthropic's address, and those of others who sell its models.
func (Face) Find(r *http.Request) face.Errand {
	switch r.URL.Path {
	case "/v1/messages":
		return face.Errand{Aim: face.Ask, Operation: ownDoor}.ByMethod(r, http.MethodPost)
	case "/anthropic/v1/messages":
		return face.Errand{Aim: face.Ask, Operation: cloudDoor}.ByMethod(r, http.MethodPost)
	case "/v1/models":
		return face.Errand{Aim: face.List, Operation: ownDoor}.ByMethod(r, http.MethodGet)
	}
	if model, ok := vertexModel(r.URL.Path); ok {
		return face.Errand{Aim: face.Ask, Operation: vertexDoor, Model: model}.ByMethod(r, http.MethodPost)
	}
	return face.Errand{}
}

// vertexModel returns the model in a path of Vertex's, false if the path is not one.
func vertexModel(path string) (string, bool) {
	_, rest, found := strings.Cut(path, "/publishers/anthropic/models/")
	if !found || !strings.HasPrefix(path, "/v1/projects/") {
		return "", false
	}
	model, operation, _ := strings.Cut(rest, ":")
	return model, model != "" && (operation == "rawPredict" || operation == "streamRawPredict")
}

// Read reads a body as Anthropic does.
func (Face) Read(r *http.Request, e face.Errand, body string) face.Request {
	req := &request{door: e.Operation, key: face.Bearer(r.Header)} // Vertex has Bearer alone
	if e.Operation != vertexDoor {
		req.key = cmp.Or(r.Header.Get("X-Api-Key"), req.key)
	}
	req.Model = e.Model
	if e.Aim == face.Ask {
		req.read(r.Header.Get("Anthropic-Version"), body)
	}
	return req
}

// Models returns a page with all models.
func (Face) Models(names []string, _ face.Stamp) []byte {
	b := face.Each([]byte(`{"data":[`), names, func(b []byte, _ int, name string) []byte {
		return fmt.Appendf(b, `{"type":"model","id":%s,"display_name":%[1]s,"created_at":"2025-01-01T00:00:00Z"}`, face.Quote(name))
	})
	return fmt.Appendf(b, `],"has_more":false,"first_id":%s,"last_id":%s}`, face.Quote(names[0]), face.Quote(names[len(names)-1]))
}

// Fault answers in Anthropic's words.
func (Face) Fault(status int, _ *http.Request, s face.Stamp) face.Reply {
	switch status {
	case http.StatusMethodNotAllowed:
		return refusal(status, invalidRequest, "Method Not Allowed", s)
	case http.StatusRequestEntityTooLarge:
		return refusal(status, tooLarge, tooLargeMessage, s)
	}
	return refusal(status, notFound, "Not Found", s)
}

// organization is the owner of the quota, the same for all keys.
const organization = "00000000-0000-4000-8000-000000000001"

// Mark sets the id of the request, and the organization.
func (Face) Mark(h http.Header, _ *http.Request, s face.Stamp) {
	h["Request-Id"] = []string{requestID(s)}
	h["Anthropic-Organization-Id"] = []string{organization}
}

func requestID(s face.Stamp) string { return fmt.Sprintf("req_sim%016x", s.Serial) }
