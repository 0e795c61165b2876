package openai

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider/sim/face"
)

// Face is OpenAI's, and Azure's if a request comes to one of Azure's addresses. The zero
// value is ready.
type Face struct{}

// The operations, spelled as OpenAI's paths.
const (
	chat        = "/v1/chat/completions"
	completions = "/v1/completions"
	embeddings  = "/v1/embeddings"
	responses   = "/v1/responses"
	moderations = "/v1/moderations"
	rerank      = "/v1/rerank"   // of servers of OpenAI's shape: OpenAI has none
	messages    = "/v1/messages" // of Anthropic's dialect, which some servers speak as well
	models      = "/v1/models"
)

// Name returns the dialect's name.
func (Face) Name() string { return "openai" }

// Base returns the path below which OpenAI's clients look.
func (Face) Base() string { return "/v1" }

// Find knows OpenAI's paths, and Azure's two forms of them.
func (Face) Find(r *http.Request) face.Errand {
	if a, ok := azureAddress(r.URL); ok {
		return errand(a.operation, a.deployment).ByMethod(r, methodOf(a.operation))
	}
	return errand(r.URL.Path, "").ByMethod(r, methodOf(r.URL.Path))
}

func errand(operation, model string) face.Errand {
	switch operation {
	case chat, completions, embeddings, responses, moderations, rerank, messages:
		return face.Errand{Aim: face.Ask, Operation: operation, Model: model}
	case models:
		return face.Errand{Aim: face.List}
	}
	return face.Errand{}
}

func methodOf(operation string) string {
	if operation == models {
		return http.MethodGet
	}
	return http.MethodPost
}

// Read reads a body as OpenAI does: it ignores unknown fields.
func (Face) Read(r *http.Request, e face.Errand, body string) face.Request {
	req := &request{operation: e.Operation, key: bearer(r.Header)}
	if _, ok := azureAddress(r.URL); ok {
		req.azure = true
		req.readAzureKey(r.Header)
	}
	if e.Model != "" {
		req.Model, req.deployed = e.Model, true
	}
	req.peek(body)
	return req
}

// Call charges as OpenAI does.
func (r *request) Call() face.Call {
	return face.Call{Tokens: r.charge(), Key: r.key, Keyless: r.keyless, Model: r.Model, Invalid: r.Complaint != "", Stream: r.stream}
}

// bearer returns the key, also of a client that leaves out the word before it.
func bearer(h http.Header) string {
	key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return key
}

// Models returns OpenAI's list.
func (Face) Models(names []string, s face.Stamp) []byte { return modelList(names, s.Now) }

// Fault answers in the words of OpenAI, or Azure's.
func (Face) Fault(status int, r *http.Request, _ face.Stamp) face.Reply {
	if _, ok := azurePath(r.URL.Path); ok {
		return azureFault(status)
	}
	message, code := fmt.Sprintf("Unknown request URL: %s %s. Please check the URL for typos, or see the docs at https://platform.openai.com/docs/api-reference/.", r.Method, r.URL.Path), "unknown_url"
	switch status {
	case http.StatusMethodNotAllowed:
		message, code = fmt.Sprintf("Not allowed to %s on %s.", r.Method, r.URL.Path), "method_not_supported"
	case http.StatusRequestEntityTooLarge:
		message, code = fmt.Sprintf("Request body is larger than %d bytes.", face.MaxBody), "request_too_large"
	}
	return face.JSON(status, errorBody(message, invalidRequest, "", code))
}

// Mark sets the request's id, for Azure under Azure's name too.
func (Face) Mark(h http.Header, r *http.Request, s face.Stamp) {
	id := fmt.Sprintf("req_sim%016x", s.Serial)
	h["X-Request-Id"] = []string{id}
	if _, ok := azurePath(r.URL.Path); ok {
		h["Apim-Request-Id"] = []string{id}
	}
}
