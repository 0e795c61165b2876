package sigv4_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"time"
)

// checker checks signatures as AWS's guide says that they are made, of what came over the
// wire. It shares no code with what signs.
type checker struct{ id, secret, token, region, service string }

// check says what is wrong with a request; now is the server's clock.
func (c checker) check(r *http.Request, body []byte, now time.Time) error {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return fmt.Errorf("no signature: %q", r.Header.Get("Authorization"))
	}
	fields := map[string]string{}
	for _, field := range strings.Split(rest, ",") {
		word, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[word] = value
	}
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil || now.Sub(at).Abs() > 5*time.Minute {
		return fmt.Errorf("date %q", date)
	}
	scope := strings.Join([]string{date[:8], c.region, c.service, "aws4_request"}, "/")
	if fields["Credential"] != c.id+"/"+scope {
		return fmt.Errorf("credential %q", fields["Credential"])
	}
	if r.Header.Get("X-Amz-Security-Token") != c.token {
		return fmt.Errorf("another token")
	}
	names := strings.Split(fields["SignedHeaders"], ";")
	if err := covered(r, names); err != nil {
		return err
	}
	if want := c.signature(scope, date, canonical(r, names, body)); fields["Signature"] != want {
		return fmt.Errorf("signature %s, not %s", fields["Signature"], want)
	}
	return nil
}

// covered demands what AWS demands to be signed.
func covered(r *http.Request, names []string) error {
	if !sort.StringsAreSorted(names) {
		return fmt.Errorf("signed headers %q", names)
	}
	is := map[string]bool{}
	for _, name := range names {
		is[name] = true
	}
	if !is["host"] {
		return fmt.Errorf("the host is not signed")
	}
	for name := range r.Header {
		lower := strings.ToLower(name)
		if (strings.HasPrefix(lower, "x-amz-") || lower == "content-type") && !is[lower] {
			return fmt.Errorf("%s is not signed", lower)
		}
	}
	return nil
}

// canonical is the canonical request: of a path as it came, escaped once more.
func canonical(r *http.Request, names []string, body []byte) string {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	var pairs []string
	if query != "" {
		pairs = strings.Split(query, "&")
	}
	for i, pair := range pairs {
		if !strings.Contains(pair, "=") {
			pairs[i] = pair + "="
		}
	}
	sort.Strings(pairs)
	var headers strings.Builder
	for _, name := range names {
		values := r.Header.Values(name)
		if name == "host" {
			values = []string{r.Host}
		}
		for i, value := range values {
			values[i] = strings.Join(strings.FieldsFunc(value, func(r rune) bool { return r == ' ' }), " ")
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.Join(values, ","))
	}
	return strings.Join([]string{
		r.Method, onceMore(path), strings.Join(pairs, "&"), headers.String(), strings.Join(names, ";"), sum(body),
	}, "\n")
}

func onceMore(path string) string {
	var out strings.Builder
	for _, c := range []byte(path) {
		if strings.ContainsRune("/-._~", rune(c)) || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

func (c checker) signature(scope, date, canonical string) string {
	key := []byte("AWS4" + c.secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, strings.Join([]string{"AWS4-HMAC-SHA256", date, scope, sum([]byte(canonical))}, "\n")))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
