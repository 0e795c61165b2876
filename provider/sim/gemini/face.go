package gemini

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headrace/headrace/provider/sim/face"
)

// Face is Gemini's, at AI Studio's addresses and at Vertex'. The zero value is ready.
type Face struct{}

// The operations.
const (
	generate   = "generateContent"
	stream     = "streamGenerateContent"
	embed      = "embedContent"
	embedBatch = "batchEmbedContents"
)

// Name returns the dialect's name.
func (Face) Name() string { return "gemini" }

// Base is empty: clients have the whole path.
func (Face) Base() string { return "" }

// address is a path taken apart.
type address struct {
	version   string // such as v1beta
	vertex    bool
	resource  string // Vertex' name of the model: all but the version and the operation
	model     string
	operation string // "" with the list of models
}

var versions = []string{"v1beta", "v1", "v1beta1", "v1alpha"}

// addressOf reads /VERSION[/projects/P/locations/L][/publishers/google]/models/M:OPERATION,
// as it was sent: a slash or colon in a model's name is escaped.
func addressOf(path string) (a address, ok bool) {
	a.version, path, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !slices.Contains(versions, a.version) {
		return a, false
	}
	if path == "models" {
		return a, true
	}
	colon := strings.LastIndexByte(path, ':')
	if colon < 0 {
		return a, false
	}
	a.resource, a.operation = path[:colon], path[colon+1:]
	parts := strings.Split(a.resource, "/")
	switch {
	case len(parts) == 8 && parts[0] == "projects" && parts[2] == "locations":
		a.vertex, parts = true, parts[4:]
	case len(parts) == 4:
		a.vertex = true
	}
	if a.vertex {
		if parts[0] != "publishers" || parts[1] != "google" {
			return a, false
		}
		parts = parts[2:]
	}
	if len(parts) != 2 || parts[0] != "models" || parts[1] == "" {
		return a, false
	}
	model, err := url.PathUnescape(parts[1])
	a.model = model
	return a, err == nil && (slices.Contains([]string{generate, stream, embed}, a.operation) || !a.vertex && a.operation == embedBatch)
}

// Find knows the paths of AI Studio and of Vertex.
func (Face) Find(r *http.Request) face.Errand {
	a, ok := addressOf(r.URL.EscapedPath())
	switch {
	case !ok:
		return face.Errand{}
	case a.operation == "":
		return face.Errand{Aim: face.List}.ByMethod(r, http.MethodGet)
	}
	return face.Errand{Aim: face.Ask, Operation: a.operation, Model: a.model}.ByMethod(r, http.MethodPost)
}

// Read reads a body as Google does.
func (Face) Read(r *http.Request, e face.Errand, body string) face.Request {
	req := &request{key: cmp.Or(r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"), face.Bearer(r.Header)), sse: r.URL.Query().Get("alt") == "sse"}
	req.address, _ = addressOf(r.URL.EscapedPath())
	req.Model = e.Model
	if e.Aim == face.Ask {
		req.read(body)
	}
	return req
}

// Models returns a page with all models.
func (Face) Models(names []string, _ face.Stamp) []byte {
	return append(face.Each([]byte(`{"models":[`), names, func(b []byte, _ int, name string) []byte {
		return fmt.Appendf(b, `{"name":%s,"version":"001","displayName":%s,"inputTokenLimit":1048576,"outputTokenLimit":65536,`+
			`"supportedGenerationMethods":["generateContent","embedContent","batchEmbedContents"]}`, face.Quote("models/"+name), face.Quote(name))
	}), `]}`...)
}

// Fault returns a page, as Google's front does for an unknown service.
func (Face) Fault(status int, r *http.Request, _ face.Stamp) face.Reply {
	return face.Typed(status, "text/html; charset=UTF-8", fmt.Appendf(nil,
		"<!DOCTYPE html>\n<html lang=en>\n<title>Error %d (%s)!!1</title>\n<p><b>%[1]d.</b> <ins>That’s an error.</ins>\n", status, http.StatusText(status)))
}

// Mark does nothing: Google names a request only in its body.
func (Face) Mark(http.Header, *http.Request, face.Stamp) {}
