package provider

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// credentialHeaders are those by which providers, and proxies on the way, are given keys
// and tokens.
var credentialHeaders = [...]string{
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Goog-Iam-Authorization-Token", "X-Amz-Security-Token", "Proxy-Authorization",
}

// credentialParameters are those of a URL, in small letters. A client of ours puts no key
// there; others do.
var credentialParameters = map[string]bool{
	"key": true, "api_key": true, "api-key": true, "apikey": true, "access_token": true, "token": true,
	"x-amz-security-token": true, "x-amz-signature": true, "sig": true,
}

// hasCredentials reports whether any header is one of credentialHeaders. A request has few headers:
// to go through them costs less than to look for each name.
func hasCredentials(h http.Header) bool {
	for name := range h {
		if slices.Contains(credentialHeaders[:], name) {
			return true
		}
	}
	return false
}

// appendCredentials appends what a request proves with who sends it.
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
				out = append(out, v, url.QueryEscape(v)) // as it is, and as the URL has it
			}
		}
	}
	return out
}
