package provider

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// minSecret is the length from which a credential is taken out of texts. Shorter
// ones are placeholders for servers that check none ("EMPTY", "none"); to
// replace those would only garble what a server says.
const minSecret = 8

const redacted = "[redacted]"

// Redact returns body without the given secrets: a gateway may echo what it was sent. A secret
// is found as it is and as JSON may escape it, also in a JSON string that is itself JSON. Valid
// JSON stays valid. Redact also takes out the beginning of a secret at the body's end, where
// the body is cut to its bound. It does not change body itself, and returns it if it holds no
// secret. It leaves secrets shorter than 8 bytes, and those that could be numbers.
func Redact(body []byte, secrets ...string) []byte {
	for _, s := range secrets {
		body = redactOne(body, s)
		if !strings.ContainsAny(s, `"\`) {
			continue
		}
		for range maxNested { // JSON must escape these two, and JSON within JSON once more
			s = escapedOnce.Replace(s)
			body = redactOne(body, s)
		}
	}
	return body
}

// redactOne takes one spelling of a secret out of body, and the beginning of one at its end.
func redactOne(body []byte, secret string) []byte {
	if mayContain(body, secret) && isSecret(secret) {
		body = replaceSecret(body, secret)
	}
	if mayEndInside(body, secret) && isSecret(secret) {
		body = cutPartialSecret(body, secret)
	}
	return body
}

// maxNested is the number of levels of JSON within JSON that are looked into: as many as
// maxSlashes allows.
const maxNested = 3

// escapedOnce writes a text as JSON does within a string.
var escapedOnce = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// RedactText is Redact for short texts. They nearly always hold no secret, so a cheap test comes first: a secret shows its first
// minSecret bytes even if it is cut off, or a backslash where it is escaped.
func RedactText(text string, secrets ...string) string {
	for _, s := range secrets {
		if isSecret(s) && (strings.Contains(text, s[:minSecret]) || strings.IndexByte(text, '\\') >= 0) {
			return string(Redact([]byte(text), secrets...))
		}
	}
	return text
}

// isSecret tells secrets from placeholders. A text that could be a number is no secret: taking
// it out would change other numbers that contain it.
func isSecret(s string) bool { return len(s) >= minSecret && strings.Trim(s, "0123456789+-.eE") != "" }

// rareEnd is the length of the part of a secret's end that is searched for. It is long enough
// to be found in nothing else, and no longer than processors compare at once.
const rareEnd = 31

// mayContain is a cheap test, which returns false for nearly every body without the secret. JSON has
// no need to escape the characters of keys, but it may.
func mayContain(body []byte, secret string) bool {
	return bytes.Contains(body, []byte(secret[max(0, len(secret)-rareEnd):])) ||
		bytes.Contains(body, []byte(`\u00`)) ||
		strings.IndexByte(secret, '/') >= 0 && bytes.Contains(body, []byte(`\/`))
}

// replaceSecret replaces every spelling of the secret in body, with or without escapes. A backslash
// that would escape the replacement is taken out, too. Without any spelling the result is body
// itself.
func replaceSecret(body []byte, secret string) []byte {
	var out []byte
	rest := body
	for i := 0; i < len(rest); i++ {
		n, matched := matchSpelling(rest[i:], secret)
		if matched < len(secret) {
			continue
		}
		out = append(append(out, dropEscape(rest[:i])...), redacted...)
		rest, i = rest[i+n:], -1
	}
	if out == nil {
		return body
	}
	return append(out, rest...)
}

// dropEscape returns text without a backslash at its end that would escape the next byte.
func dropEscape(text []byte) []byte {
	if slashes := len(text) - len(bytes.TrimRight(text, `\`)); slashes%2 == 1 {
		return text[:len(text)-1]
	}
	return text
}

// matchSpelling compares the beginning of text with the secret. It returns the number of bytes that
// spell a part of the secret, and the number of characters that they spell.
func matchSpelling(text []byte, secret string) (n, matched int) {
	for matched < len(secret) {
		size := matchByte(text[n:], secret[matched])
		if size == 0 {
			break
		}
		n += size
		matched++
	}
	return n, matched
}

// maxSlashes is the largest number of backslashes in an escape: JSON within JSON, three times over.
const maxSlashes = 8

// matchByte returns the number of bytes that spell c at the beginning of text: one, or those of
// an escape with any number of backslashes; 0 if they spell something else.
func matchByte(text []byte, c byte) int {
	switch {
	case len(text) == 0:
		return 0
	case text[0] == c:
		return 1
	case text[0] != '\\':
		return 0
	}
	text = text[:min(len(text), maxSlashes+5)]
	escape := bytes.TrimLeft(text, `\`)
	slashes := len(text) - len(escape)
	if len(escape) >= 5 && escape[0] == 'u' {
		if x, err := strconv.ParseUint(string(escape[1:5]), 16, 16); err == nil && x == uint64(c) {
			return slashes + 5
		}
	}
	if c == '/' && len(escape) > 0 && escape[0] == '/' {
		return slashes + 1
	}
	return 0
}

// mayEndInside reports whether body may end within the secret. It returns false for whole JSON:
// neither keys nor escapes have its last bytes.
func mayEndInside(body []byte, secret string) bool {
	if len(body) == 0 {
		return false
	}
	last := body[len(body)-1]
	return strings.IndexByte(secret, last) >= 0 || strings.IndexByte(`\u0123456789abcdefABCDEF`, last) >= 0
}

// cutPartialSecret cuts off the end of a body where a secret begins there. At least minSecret bytes
// of the secret must be there.
func cutPartialSecret(body []byte, secret string) []byte {
	for i := max(0, len(body)-(maxSlashes+5)*len(secret)); i < len(body); i++ {
		if n, matched := matchSpelling(body[i:], secret); matched >= minSecret && isCut(body[i+n:]) {
			return body[:i]
		}
	}
	return body
}

// isCut reports whether nothing follows, or an escape of which the end is missing.
func isCut(rest []byte) bool {
	return len(rest) == 0 || rest[0] == '\\' && len(rest) < maxSlashes+5 && len(bytes.TrimLeft(rest, `\`)) < 5
}

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

// appendCredentials appends the secrets in a request's headers and query.
func appendCredentials(out []string, req *http.Request) []string {
	if hasCredentials(req.Header) {
		for _, name := range credentialHeaders {
			for _, value := range req.Header[name] {
				// "Bearer KEY": an echo may have the key alone.
				if _, key, ok := strings.Cut(value, " "); ok {
					value = key
				}
				out = append(out, value)
			}
		}
	}
	if req.URL == nil || req.URL.RawQuery == "" {
		return out
	}
	for name, values := range req.URL.Query() {
		if credentialParameters[strings.ToLower(name)] {
			for _, value := range values {
				out = append(out, value, url.QueryEscape(value)) // as it is, and as in the URL
			}
		}
	}
	return out
}
