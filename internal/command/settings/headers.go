package settings

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/yamlfile"
)

// headerTexts holds the values of --header, as they were given.
type headerTexts []string

// betweenHeaders separates several headers in one text: no argument, variable or header may
// contain it.
const betweenHeaders = "\x00"

// Set adds one header, or those that String has listed.
func (h *headerTexts) Set(value string) error {
	*h = append(*h, strings.Split(value, betweenHeaders)...)
	return nil
}

// String returns a text from which Set reads the same headers.
func (h *headerTexts) String() string { return strings.Join(*h, betweenHeaders) }

// Type is part of [pflag.Value]: the help shows it.
func (h *headerTexts) Type() string { return "NAME=VALUE" }

// headersInLines turns the value of HEADRACE_HEADER, which has one header a line, into a value for Set.
func headersInLines(value string) string {
	var list []string
	for line := range strings.Lines(value) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			list = append(list, line)
		}
	}
	return strings.Join(list, betweenHeaders)
}

// has reports whether a header of that name was given.
func (h *headerTexts) has(name string) bool {
	return slices.ContainsFunc(*h, func(text string) bool {
		given, _, _ := strings.Cut(text, "=")
		return http.CanonicalHeaderKey(given) == http.CanonicalHeaderKey(name)
	})
}

// An AddedHeader is a header that the user adds to every call.
type AddedHeader struct {
	Name     string // in the form of net/http
	Prefix   string // before a secret, such as "Bearer "
	Variable string // holds the secret; "" otherwise
	File     string // holds the secret; "" otherwise
	Value    string // of a header without a secret
}

// IsSecret reports whether the value comes from a variable or a file.
func (h *AddedHeader) IsSecret() bool { return h.Variable != "" || h.File != "" }

// From names the variable or the file that holds the secret.
func (h *AddedHeader) From() string { return h.Variable + h.File }

// wantHeader describes the form of --header. No error repeats the user's text: it may contain a key.
const wantHeader = "want NAME=VALUE, such as HTTP-Referer=https://example.com"

// secretForm matches a value that names the place of a secret, after a prefix in the header.
var secretForm = regexp.MustCompile(`^(?:([A-Za-z]+) )?(env|file):(.*)$`)

// parseHeader parses one header. Its errors do not contain the value, which may be a key.
func parseHeader(text string) (h AddedHeader, err error) {
	name, value, found := strings.Cut(text, "=")
	switch {
	case !found || name == "" || isKeyAlone(name, value):
		return h, errors.New("it has no name and value: " + wantHeader)
	case !isHeaderName(name):
		return h, errors.New("its name has a character that no header's name may have: " + wantHeader)
	}
	h.Name = http.CanonicalHeaderKey(name)
	if why := notForUsers[h.Name]; why != "" {
		return h, fmt.Errorf("%s cannot be set: %s", name, why)
	}
	value = strings.Trim(value, " ")
	switch {
	case value == "":
		return h, fmt.Errorf("%s has no value: give one, or remove it", name)
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }):
		return h, fmt.Errorf("%s has a character that headers cannot have: only printable ASCII is allowed, on one line", name)
	}
	if parts := secretForm.FindStringSubmatch(value); parts != nil {
		if parts[1] != "" {
			h.Prefix = parts[1] + " "
		}
		return h, h.setSecretPlace(name, parts[2], parts[3])
	}
	if looksSecret(h.Name, value) {
		return h, fmt.Errorf("%s seems to have a key in its value: put the key into a variable or a file, and write %[1]s=env:VARIABLE or %[1]s=file:PATH", name)
	}
	h.Value = value
	return h, nil
}

// isKeyAlone reports whether a name and a value seem to be one key: base64 ends with = as well.
func isKeyAlone(name, value string) bool {
	return exit.WithoutKeys(name) != name || strings.Trim(value, "=") == "" && exit.LooksLikeKey(name)
}

// setSecretPlace stores the file or variable that holds a secret, or returns why the place is invalid.
func (h *AddedHeader) setSecretPlace(name, kind, place string) error {
	switch {
	case kind == "file" && (place == "" || exit.WithoutKeys(place) != place):
		return fmt.Errorf("%s=file: needs the name of a file", name)
	case kind == "file":
		h.File = place
	case !variableName.MatchString(place) || exit.LooksLikeKey(place) && strings.ToUpper(place) != place:
		return fmt.Errorf("%s=env: needs the name of a variable, not a key", name)
	default:
		h.Variable = place
	}
	return nil
}

// isHeaderName reports whether a name is a token of RFC 9110.
func isHeaderName(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

const ofConnection = "it is about a connection, which many calls share"

// notForUsers lists the headers that would break every call, and why.
var notForUsers = map[string]string{
	"Content-Type": "bodies are JSON, and calls say so", "Content-Length": "it is the length of each body", "Content-Encoding": "bodies are sent unpacked",
	"Transfer-Encoding": ofConnection, "Connection": ofConnection, "Keep-Alive": ofConnection, "Proxy-Connection": ofConnection,
	"Te": ofConnection, "Trailer": ofConnection, "Upgrade": ofConnection, "Http2-Settings": ofConnection, "Expect": ofConnection,
	"Host": "--base-url names the host", "Accept-Encoding": "answers would come packed and stay so",
	"Proxy-Authorization": "user and password of a proxy are a part of its address in HTTPS_PROXY",
	"Idempotency-Key":     "each call would get the answer to the first", "X-Idempotency-Key": "each call would get the answer to the first",
}

// ofKeys lists the headers that carry the provider's key, or its signature.
var ofKeys = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Amz-Date", "X-Amz-Security-Token"}

// secretName matches a header's name, in small letters, that contains a word for a secret.
// Portkey is a company.
var secretName = regexp.MustCompile(`(?:^|[-_.])(?:key|auth|[a-z0-9]*(?:apikey|token|secret|password|authorization|credentials?|cookie))(?:$|[-_.])`)

// secretStart matches the beginning of values that prove the caller's identity.
var secretStart = regexp.MustCompile(`(?i)^(?:bearer|basic|token|apikey) |^eyJ`)

// memberName finds the names in a JSON value.
var memberName = regexp.MustCompile(`"([^"]*)" *:`)

// looksSecret reports whether a value on a command line seems to be a secret. It checks the header's name,
// the names in the value, and its beginning.
func looksSecret(name, value string) bool {
	names := []string{name}
	for _, member := range memberName.FindAllStringSubmatch(value, -1) {
		names = append(names, member[1])
	}
	return slices.ContainsFunc(names, func(name string) bool { return secretName.MatchString(strings.ToLower(name)) }) ||
		secretStart.MatchString(value) || exit.WithoutKeys(value) != value
}

// checkHeaders parses the headers of the flags, and refuses those that carry the key.
func (f *Flags) checkHeaders() error {
	var faults []error
	given := map[string]bool{}
	f.Added = nil
	for _, text := range f.headers {
		header, err := parseHeader(text)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("--header: %w", err))
		case given[header.Name]:
			faults = append(faults, fmt.Errorf("--header: %s is set twice: keep one", header.Name))
		case slices.Contains(ofKeys, header.Name) && !f.SendsNoKey():
			faults = append(faults, fmt.Errorf("--header: %s has the provider's key, which --api-key-env names: to send another, add --api-key-env none", header.Name))
		}
		given[header.Name] = true
		f.Added = append(f.Added, header)
	}
	return errors.Join(faults...)
}

// setHeaders adds the headers of the file's section, unless a flag or a variable sets them.
func (c *configFile) setHeaders(section *ast.MappingValueNode) {
	const advice = `write one a line below it, indented, as in "HTTP-Referer: https://example.com"`
	body := yamlfile.Section(section)
	if len(body) == 0 {
		c.Complain(section.Key, "headers has no headers", advice)
	}
	for _, entry := range body {
		name := entry.Key.GetToken().Value
		value, ok := yamlfile.Plain(entry.Value)
		if !ok {
			c.Complain(entry.Key, Clipped(exit.WithoutKeys(name))+" needs a single value", advice)
			continue
		}
		if c.headers.has(name) && !slices.Contains(c.ownHeaders, http.CanonicalHeaderKey(name)) {
			continue // a flag beats the file
		}
		text := name + "=" + value
		if err := c.checkHeader(name, text); err != nil {
			c.Complain(entry.Key, "headers", err.Error())
			continue
		}
		c.ownHeaders = append(c.ownHeaders, http.CanonicalHeaderKey(name))
		_ = c.flags.Set("header", text) // Set takes every text
	}
}

// checkHeader refuses an invalid header of the file. Its name must not contain =, where parseHeader would cut
// it.
func (c *configFile) checkHeader(name, text string) error {
	h, err := parseHeader(text)
	switch {
	case err != nil:
		return err
	case !isHeaderName(name):
		return errors.New("a name has a character that no header's name may have")
	case slices.Contains(c.ownHeaders, h.Name):
		return fmt.Errorf("%s is set twice: keep one", h.Name)
	}
	return nil
}
