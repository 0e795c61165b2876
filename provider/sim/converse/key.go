package converse

import (
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider/sim/face"
)

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
func accessKey(words string, h http.Header) (key, why string) {
	parts := map[string]string{}
	for word := range strings.SplitSeq(words, ",") {
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
	at := strings.Split(scope, "/")
	if len(at) != 4 || at[2] != "bedrock" || at[3] != "aws4_request" {
		return "", "Credential should be scoped to correct service: 'bedrock'. "
	}
	if headers := ";" + parts["SignedHeaders"] + ";"; !strings.Contains(headers, ";host;") {
		return "", "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
	}
	return key, ""
}
