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

// modelOf returns the id of the model in a path of the operation, false if the path is another.
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

// signing begins the Authorization of a signature.
const signing = "AWS4-HMAC-SHA256 "

// noToken is AWS's message for a request without Authorization.
const noToken = "Missing Authentication Token"

// readKey takes a Bearer key, or the access key of a signature.
func (r *request) readKey(h http.Header) {
	auth := h.Get("Authorization")
	if words, signed := strings.CutPrefix(auth, signing); signed {
		r.signed = true
		r.key, r.unsigned = accessKey(words, h)
		return
	}
	r.key = face.Bearer(h)
	switch {
	case auth == "":
		r.unsigned = noToken
	case r.key == "":
		r.unsigned = "Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' parameter. Authorization header requires 'SignedHeaders' parameter."
	}
}

// accessKey reads "Credential=KEY/DATE/REGION/bedrock/aws4_request, SignedHeaders=a;b,
// Signature=HEX". why is not empty if a part is missing or is for something else.
func accessKey(parameters string, h http.Header) (key, why string) {
	parts := map[string]string{}
	for word := range strings.SplitSeq(parameters, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		parts[name] = value
	}
	for _, name := range []string{"Credential", "Signature", "SignedHeaders"} {
		if parts[name] == "" {
			return "", "Authorization header requires '" + name + "' parameter."
		}
	}
	if h.Get("X-Amz-Date") == "" && h.Get("Date") == "" {
		return "", "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
	}
	// An access key has no slash in it: the scope follows the first slash.
	key, scope, _ := strings.Cut(parts["Credential"], "/")
	scopeParts := strings.Split(scope, "/")
	if len(scopeParts) != 4 || scopeParts[2] != "bedrock" || scopeParts[3] != "aws4_request" {
		return "", "Credential should be scoped to correct service: 'bedrock'. "
	}
	if headers := ";" + parts["SignedHeaders"] + ";"; !strings.Contains(headers, ";host;") {
		return "", "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
	}
	return key, ""
}
