package provider

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// credentialHeaders lists the headers in which providers, and proxies on the way, take keys
// and tokens.
var credentialHeaders = [...]string{
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Goog-Iam-Authorization-Token", "X-Amz-Security-Token", "Proxy-Authorization",
}

// credentialParameters lists the parameters of a URL with keys, in small letters. Clients of ours
// put no key there; others do.
var credentialParameters = map[string]bool{
	"key": true, "api_key": true, "api-key": true, "apikey": true, "access_token": true, "token": true,
	"x-amz-security-token": true, "x-amz-signature": true, "sig": true,
}

// hasCredentials reports whether any header is one of credentialHeaders. A request has few headers:
// going through them costs less than looking for each name.
func hasCredentials(h http.Header) bool {
	for name := range h {
		if slices.Contains(credentialHeaders[:], name) {
			return true
		}
	}
	return false
}

// appendCredentials appends a request's proofs of who sends it.
func appendCredentials(out []string, req *http.Request) []string {
	if hasCredentials(req.Header) {
		for _, name := range credentialHeaders {
			for _, v := range req.Header[name] {
				// "Bearer KEY": an echo may have the key alone.
				if _, key, ok := strings.Cut(v, " "); ok {
					v = key
				}
				out = append(out, v)
			}
		}
	}
	if req.URL == nil || req.URL.RawQuery == "" {
		return out
	}
	for name, values := range req.URL.Query() {
		if credentialParameters[strings.ToLower(name)] {
			for _, v := range values {
				out = append(out, v, url.QueryEscape(v)) // as it is, and as in the URL
			}
		}
	}
	return out
}
