package provider

import (
	"bytes"
	"strings"
)

// minSecret is the length from which a credential is taken out of texts. Shorter
// ones are placeholders for servers that check none ("EMPTY", "none"); to
// replace those would only garble what a server says.
const minSecret = 8

const redacted = "[redacted]"

// Redact returns body without the given secrets: a gateway may echo what it was
// sent. The beginning of a secret at the body's end goes, too, for there a body
// is cut to its bound. Body itself is not changed, and is returned if it holds
// none. Secrets shorter than 8 bytes are left.
func Redact(body []byte, secrets ...string) []byte {
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		if bytes.Contains(body, []byte(s)) {
			body = bytes.ReplaceAll(body, []byte(s), []byte(redacted))
		}
		body = cutBeginning(body, s)
	}
	return body
}

// redactText is Redact for short texts, which hold no secret nearly always.
func redactText(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= minSecret && strings.Contains(text, s[:minSecret]) {
			return string(Redact([]byte(text), secrets...))
		}
	}
	return text
}

// cutBeginning takes the beginning of a secret, of at least minSecret bytes, off
// the end of a body.
func cutBeginning(body []byte, secret string) []byte {
	for n := min(len(secret)-1, len(body)); n >= minSecret; n-- {
		if bytes.HasSuffix(body, []byte(secret[:n])) {
			return body[:len(body)-n]
		}
	}
	return body
}
