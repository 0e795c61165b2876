package exit

import (
	"regexp"
	"strings"
)

// KeyShape matches the beginnings of providers' keys and of the tokens of headrace serve, with enough
// characters after them to be of use.
var KeyShape = regexp.MustCompile(`\bhr-[0-9a-f]{32,}|\b(?:sk|rk|gsk|csk|hf|r8|xai|nvapi|pplx|tgp|ghp|github_pat|bedrock-api-key)[-_][A-Za-z0-9_-]{8,}|\bfw_[A-Za-z0-9]{8,}|\b(?:AIza|ABSK)[A-Za-z0-9_-]{8,}`)

// tokenShape matches the token that lets others into a cluster, as it stands in a line to
// join by.
var tokenShape = regexp.MustCompile(`\b(nats|tls)://[^\s@/]+@`)

// WithoutKeys returns a text that repeats the user's words, with anything that looks like a key, or like a
// cluster's token, redacted.
func WithoutKeys(text string) string {
	return KeyShape.ReplaceAllString(tokenShape.ReplaceAllString(text, "$1://[redacted]@"), "[redacted]")
}

// In an address a user and a password may stand before the host, and some servers take a key as a parameter.
var (
	userShape      = regexp.MustCompile(`\b([a-zA-Z][a-zA-Z0-9+.-]*)://[^\s@/?#"']+@`)
	parameterShape = regexp.MustCompile(`(?i)([?&][a-z0-9_.-]*(?:key|token|secret|password|signature|sig|code))=[^\s&#"']+`)
)

// WithoutSecrets is WithoutKeys for settings that are shown: it also redacts those parts of addresses that may be secret.
func WithoutSecrets(text string) string {
	text = userShape.ReplaceAllString(WithoutKeys(text), "$1://[redacted]@")
	return parameterShape.ReplaceAllString(text, "$1=[redacted]")
}

// leastKey is the least length of a text that looks like a key by its letters alone. The
// shortest keys that providers give are longer, and most names of variables are shorter.
const leastKey = 20

// LooksLikeKey reports whether a text may be a key: it has a known shape, or is long and has digits and small
// letters. Names of variables seldom have both.
func LooksLikeKey(text string) bool {
	return WithoutKeys(text) != text ||
		len(text) >= leastKey && strings.ContainsAny(text, "0123456789") && strings.ToUpper(text) != text
}
