package serve

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/serve/door"
)

// keptBack lists the headers of a client that do not go to the provider: they are about this connection, say who calls,
// or are written anew.
var keptBack = map[string]bool{
	"Authorization": true, "X-Api-Key": true, "X-Goog-Api-Key": true, "Api-Key": true, "X-Goog-Iam-Authorization-Token": true,
	"X-Amz-Security-Token": true, "X-Amz-Date": true, "X-Amz-Content-Sha256": true, "Cookie": true, "Cookie2": true, "Proxy-Authorization": true,
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Http2-Settings": true, "Expect": true, "Host": true, "Content-Length": true, "Content-Type": true, "Accept-Encoding": true, "Range": true,
	"If-Match": true, "If-None-Match": true, "If-Modified-Since": true, "If-Unmodified-Since": true, "If-Range": true,
	"Origin": true, "Referer": true, "Forwarded": true, "Via": true, "Max-Forwards": true, "X-Real-Ip": true, "True-Client-Ip": true,
	"X-Original-Url": true, "X-Rewrite-Url": true, "X-Http-Method": true, "X-Http-Method-Override": true, "X-Method-Override": true,
}

// leastToken is the length from which a token is looked for within the headers, in bytes. A shorter one stands for a key
// where none is needed, and its letters are in many a header.
const leastToken = 8

// requestHeaders returns the headers of a client that go to the provider. None has a token of the client's in it,
// wherever the client has put it.
func requestHeaders(h http.Header) http.Header {
	tokens := door.Tokens(h)
	out := http.Header{"Content-Type": {"application/json"}, "Accept-Encoding": {"identity"}} // a stream that is packed comes in lumps
	named := connectionNames(h)
	for name, values := range h {
		if keptBack[name] || named[name] || strings.HasPrefix(name, prefix) || strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "Sec-") || strings.HasPrefix(name, "Access-Control-") {
			continue
		}
		if slices.ContainsFunc(values, func(v string) bool {
			return slices.ContainsFunc(tokens, func(t string) bool { return v == t || len(t) >= leastToken && strings.Contains(v, t) })
		}) {
			continue
		}
		out[name] = slices.Clone(values)
	}
	return out
}

// connectionNames returns the headers that the Connection header names: they concern this connection alone.
func connectionNames(h http.Header) map[string]bool {
	names := map[string]bool{}
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			names[http.CanonicalHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	return names
}

// passedQuery lists the parameters that go to the provider: those that say how an answer comes. All
// others, such as keys, stay here.
var passedQuery = []string{"alt", "$alt", "beta"}

// requestQuery returns the parameters of a request's address that go to the provider.
func requestQuery(raw string) string {
	if raw == "" {
		return ""
	}
	asked, err := url.ParseQuery(raw)
	if err != nil {
		return ""
	}
	out := url.Values{}
	for _, name := range passedQuery {
		if v, has := asked[name]; has {
			out[name] = v
		}
	}
	return out.Encode()
}

// keptFromClient lists the provider's headers that stay here: they are about its connection, would let pages
// read the answer, or lead clients away from this server.
var keptFromClient = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Set-Cookie": true, "Set-Cookie2": true, "Alt-Svc": true, "Strict-Transport-Security": true,
	"Www-Authenticate": true, "Location": true, "Refresh": true, "Public-Key-Pins": true, "Clear-Site-Data": true, "Nel": true, "Report-To": true,
	"X-Should-Retry": true, "Content-Length": true,
}

// copyAnswerHeaders copies the provider's headers into those of an answer.
func copyAnswerHeaders(to, from http.Header) {
	named := connectionNames(from)
	for name, values := range from {
		if keptFromClient[name] || named[name] || strings.HasPrefix(name, "Access-Control-") || strings.HasPrefix(name, "Cross-Origin-") || strings.HasPrefix(name, prefix) {
			continue
		}
		to[name] = values
	}
}
