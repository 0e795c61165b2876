package settings

import (
	"strings"
	"testing"
)

// A header is a name and a value, or the place of a secret. A refusal says what helps, and does not
// repeat the value.
func TestHeadersAreRead(t *testing.T) {
	for text, want := range map[string]AddedHeader{
		"anthropic-beta=context-1m-2025-08-07":               {Name: "Anthropic-Beta", Value: "context-1m-2025-08-07"},
		"HTTP-Referer=https://example.com/?a=b&c=d":          {Name: "Http-Referer", Value: "https://example.com/?a=b&c=d"},
		"X-Title=A title, with spaces":                       {Name: "X-Title", Value: "A title, with spaces"},
		"x-portkey-api-key=env:PORTKEY_API_KEY":              {Name: "X-Portkey-Api-Key", Variable: "PORTKEY_API_KEY"},
		"x-portkey-api-key=file:/run/secrets/portkey":        {Name: "X-Portkey-Api-Key", File: "/run/secrets/portkey"},
		"Helicone-Auth=Bearer env:HELICONE_API_KEY":          {Name: "Helicone-Auth", Prefix: "Bearer ", Variable: "HELICONE_API_KEY"},
		"x-portkey-config=pc-prod-1234":                      {Name: "X-Portkey-Config", Value: "pc-prod-1234"},
		"Helicone-User-Id=alice@example.com":                 {Name: "Helicone-User-Id", Value: "alice@example.com"},
		"X-Max-Tokens=5":                                     {Name: "X-Max-Tokens", Value: "5"},
		"X-Author=keyword":                                   {Name: "X-Author", Value: "keyword"},
		"User-Agent=acme-batch/2.0 (ops@example.com)":        {Name: "User-Agent", Value: "acme-batch/2.0 (ops@example.com)"},
		"anthropic-beta=files-api-2025-04-14,other-2026-1-2": {Name: "Anthropic-Beta", Value: "files-api-2025-04-14,other-2026-1-2"},
		"X-Env=production environment":                       {Name: "X-Env", Value: "production environment"},
		`x-gateway={"keyword":"key"}`:                        {Name: "X-Gateway", Value: `{"keyword":"key"}`},
	} {
		if h, err := parseHeader(text); err != nil || h != want {
			t.Errorf("%s: %+v, %v", text, h, err)
		}
	}
	const secret = "0123456789abcdefXYZ"
	for text, want := range map[string]string{
		"":                                        "it has no name and value: want NAME=VALUE",
		"X-A: " + secret:                          "it has no name and value: want NAME=VALUE",
		"X-A: a=" + secret:                        "a character that no header's name may have",
		"=" + secret:                              "it has no name and value",
		"X A=" + secret:                           "a character that no header's name may have",
		"X-A\r\nX-B=" + secret:                    "a character that no header's name may have",
		"X-Ä=" + secret:                           "a character that no header's name may have",
		"sk-" + secret + "=5":                     "it has no name and value",
		"Q7x" + secret + "=":                      "it has no name and value",
		"Q7x" + secret + "==":                     "it has no name and value",
		"X-A=":                                    "X-A has no value: give one, or remove it",
		"X-A=  ":                                  "X-A has no value",
		"X-A=1\r\nX-B: " + secret:                 "only printable ASCII is allowed, on one line",
		"X-A=1\nX-B=" + secret:                    "only printable ASCII is allowed, on one line",
		"X-A=env:A\nX-B=" + secret:                "only printable ASCII is allowed, on one line",
		"X-A=ä" + secret:                          "only printable ASCII is allowed",
		"x-portkey-api-key=" + secret:             "x-portkey-api-key seems to have a key in its value: put the key into a variable or a file, and write x-portkey-api-key=env:VARIABLE or x-portkey-api-key=file:PATH",
		"Helicone-Auth=" + secret:                 "Helicone-Auth seems to have a key",
		"X-AuthToken=" + secret:                   "seems to have a key",
		"x_session_token=" + secret:               "seems to have a key",
		"cf-aig-authorization=" + secret:          "seems to have a key",
		"Cookie=a=" + secret:                      "seems to have a key",
		"X-Client-Secret=" + secret:               "seems to have a key",
		"X-Password=" + secret:                    "seems to have a key",
		"X-A=Bearer " + secret:                    "seems to have a key",
		"X-A=basic " + secret:                     "seems to have a key",
		"X-A=sk-" + secret:                        "seems to have a key",
		"X-A=eyJ" + secret:                        "seems to have a key",
		`X-Config={"api_key":"sk-` + secret + `"`: "seems to have a key",
		`X-Config={"retry":3, "virtual_key" : "` + secret + `"}`: "seems to have a key",
		"X-A=env:":                      "X-A=env: needs the name of a variable, not a key",
		"X-A=env:sk-" + secret:          "X-A=env: needs the name of a variable, not a key",
		"X-A=Bearer env:9" + secret:     "X-A=env: needs the name of a variable, not a key",
		"X-A=file:":                     "X-A=file: needs the name of a file",
		"X-A=file:sk-" + secret:         "X-A=file: needs the name of a file",
		"content-type=text/" + secret:   "content-type cannot be set: bodies are JSON",
		"Content-Length=" + secret:      "cannot be set",
		"Content-Encoding=" + secret:    "cannot be set",
		"transfer-encoding=" + secret:   "cannot be set",
		"CONNECTION=" + secret:          "cannot be set: it is about a connection, which many calls share",
		"Keep-Alive=" + secret:          "cannot be set",
		"Proxy-Connection=" + secret:    "cannot be set",
		"TE=" + secret:                  "cannot be set",
		"Trailer=" + secret:             "cannot be set",
		"Upgrade=" + secret:             "cannot be set",
		"HTTP2-Settings=" + secret:      "cannot be set",
		"Expect=" + secret:              "cannot be set",
		"Host=" + secret:                "cannot be set: --base-url names the host",
		"Accept-Encoding=" + secret:     "cannot be set: answers would come packed",
		"Proxy-Authorization=" + secret: "cannot be set: user and password of a proxy are a part of its address",
		"Idempotency-Key=" + secret:     "cannot be set: each call would get the answer to the first",
		"x-idempotency-key=env:" + "A":  "cannot be set: each call would get the answer to the first",
	} {
		if h, err := parseHeader(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%q: %+v, %v", text, h, err)
		}
	}
}
