package sigv4

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

// Bedrock is the service that Bedrock's runtime is signed for.
const Bedrock = "bedrock"

// The variables that AWS's own tools read.
const (
	AccessKeyIDVariable     = "AWS_ACCESS_KEY_ID"
	SecretAccessKeyVariable = "AWS_SECRET_ACCESS_KEY" //nolint:gosec // the name of a variable
	SessionTokenVariable    = "AWS_SESSION_TOKEN"
)

// Credentials are a key of AWS. SessionToken is for credentials that expire; "" for others.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
}

// String hides the credentials from %v.
func (c Credentials) String() string { return "credentials of AWS" }

// GoString hides them from %#v.
func (c Credentials) GoString() string { return c.String() }

// Environment takes the credentials from their variables. getenv is os.Getenv or one like it.
// An error is of kind Misconfigured and names the variable that is not set.
func Environment(getenv func(string) string) (Credentials, error) {
	c := Credentials{
		AccessKeyID:     strings.TrimSpace(getenv(AccessKeyIDVariable)),
		SecretAccessKey: strings.TrimSpace(getenv(SecretAccessKeyVariable)),
		SessionToken:    strings.TrimSpace(getenv(SessionTokenVariable)),
	}
	switch {
	case c.AccessKeyID == "":
		return Credentials{}, misconfigured(AccessKeyIDVariable + " is not set")
	case c.SecretAccessKey == "":
		return Credentials{}, misconfigured(SecretAccessKeyVariable + " is not set")
	}
	return c, nil
}

// A Source signs requests for one service in one region.
type Source struct {
	signer          *v4.Signer
	credentials     aws.Credentials
	region, service string
	secrets         []string
	clock           clock
}

var _ auth.Dated = (*Source)(nil)

// New makes a source. An error is of kind Misconfigured and contains no credentials: one is
// missing, or has a character that no header may have.
func New(c Credentials, region, service string) (*Source, error) {
	switch {
	case c.AccessKeyID == "" || c.SecretAccessKey == "":
		return nil, misconfigured("the credentials are not given")
	case !isHeaderSafe(c.AccessKeyID) || !isHeaderSafe(c.SecretAccessKey) || !isHeaderSafe(c.SessionToken):
		return nil, misconfigured("the credentials have a character that no header may have")
	case !isName(region):
		return nil, misconfigured("the region is missing or invalid: want one such as eu-central-1")
	case !isName(service):
		return nil, misconfigured("the service is missing or invalid: want one such as bedrock")
	}
	s := &Source{
		signer: v4.NewSigner(), region: region, service: service,
		credentials: aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken},
		secrets:     slices.DeleteFunc([]string{c.SecretAccessKey, c.AccessKeyID, c.SessionToken}, auth.IsPlaceholder), // "" is one, too
	}
	return s, nil
}

// signed are the headers that a signature adds to a request.
var signed = [...]string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"}

// Apply signs a request with that body as it is now. It signs the content type and all headers
// of Amazon's: others may be changed on the way. The request gets a URL of its own, in which
// the path is escaped as AWS's own clients do it.
func (s *Source) Apply(ctx context.Context, r *http.Request, body []byte) error {
	address := *r.URL
	address.Path, address.RawPath = escapedPath(r.URL)
	unsigned := &http.Request{Method: r.Method, URL: &address, Host: r.Host, Header: http.Header{}}
	for name, values := range r.Header {
		if name == "Content-Type" || strings.HasPrefix(name, "X-Amz-") {
			unsigned.Header[name] = values
		}
	}
	for _, name := range signed { // of an earlier signature
		delete(unsigned.Header, name)
	}
	hash := sha256.Sum256(body)
	err := s.signer.SignHTTP(ctx, s.credentials, unsigned, hex.EncodeToString(hash[:]), s.service, s.region, s.clock.now())
	if err != nil {
		return &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: fmt.Errorf("sign: %w", err)}
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	for _, name := range signed {
		if values := unsigned.Header[name]; values != nil {
			r.Header[name] = values
		} else {
			delete(r.Header, name)
		}
	}
	r.URL, r.Host = unsigned.URL, unsigned.Host
	return nil
}

// escapedPath returns a URL's path, and the form in which it is sent: in each part all but letters,
// digits and -._~ is escaped, once. Checkers of a signature escape that once more. Of a ":"
// that is sent as it is some make "%3A", and some "%253A".
func escapedPath(u *url.URL) (path, raw string) {
	parts := strings.Split(u.EscapedPath(), "/")
	for i, part := range parts {
		if text, err := url.PathUnescape(part); err == nil { // EscapedPath is always right
			parts[i] = escape(text)
		}
	}
	return u.Path, strings.Join(parts, "/")
}

// escape returns s with all but the unreserved characters of RFC 3986 escaped, as AWS does it.
func escape(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			out.WriteByte(c)
		} else {
			out.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return out.String()
}

// Refused returns false: there are no other credentials. See RefusedFor.
func (s *Source) Refused(*http.Request) bool { return false }

// RefusedFor returns true if the provider did not accept a signature because of the clock, and
// the next one will have another time. That is the answer's time, or one that was corrected
// since.
func (s *Source) RefusedFor(r *http.Request, why *provider.Error, answer http.Header) bool {
	if !blamesClock(why) {
		return false
	}
	serverTime, err := http.ParseTime(answer.Get("Date"))
	if err != nil {
		return false
	}
	signed, err := time.Parse(dateForm, r.Header.Get("X-Amz-Date"))
	if err != nil || serverTime.Sub(signed).Abs() <= maxSkew {
		return false
	}
	return s.clock.correct(serverTime)
}

// Secrets returns the credentials, without placeholders.
func (s *Source) Secrets() []string { return s.secrets }

// String hides the credentials from %v.
func (s *Source) String() string { return "signatures for " + s.service + " in " + s.region }

// GoString hides them from %#v.
func (s *Source) GoString() string { return s.String() }

func isHeaderSafe(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// isName reports whether a text may be a region or a service, which stand between slashes.
func isName(s string) bool { return s != "" && isHeaderSafe(s) && !strings.ContainsAny(s, "/,=") }

// name begins every error of this package.
const name = "sigv4"

func misconfigured(what string) error {
	return &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: errors.New(what)}
}

const (
	// dateForm is AWS's format for the time of a signature.
	dateForm = "20060102T150405Z"
	// maxSkew is the largest error of a signature's time: AWS accepts it for five minutes.
	maxSkew = 5 * time.Minute
	// settled is the least time between two corrections of the clock. A server whose dates change
	// with every answer gets no more tries; a clock that somebody sets while a run goes on is followed.
	settled = 10 * time.Minute
)

// clock is this machine's clock, corrected by the time that a provider gives.
type clock struct {
	mu          sync.Mutex
	offset      time.Duration // added to this machine's time
	correctedAt time.Time     // when it was put right; zero: never
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

// correct sets the clock by a provider's time. It returns false if the clock was corrected a moment
// ago and that did not help. It returns true without a change if the clock is right by now.
func (c *clock) correct(serverTime time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	offset := serverTime.Sub(now)
	switch {
	case (offset - c.offset).Abs() <= maxSkew:
		return true
	case !c.correctedAt.IsZero() && now.Sub(c.correctedAt) < settled:
		return false
	}
	c.offset, c.correctedAt = offset, now
	return true
}

// Names and phrases by which services of AWS say that the time of a signature is wrong.
var (
	clockNames   = []string{"requestexpired", "requesttimetooskewed", "requestinthefuture"}
	clockPhrases = []string{"signature expired", "signature not yet current"}
)

// blamesClock reports whether an error says that the time of a signature was wrong.
func blamesClock(e *provider.Error) bool {
	for _, name := range []string{e.Code, e.Type} {
		if slices.Contains(clockNames, strings.TrimSuffix(strings.ToLower(name), "exception")) {
			return true
		}
	}
	message := strings.ToLower(e.Message)
	return slices.ContainsFunc(clockPhrases, func(phrase string) bool { return strings.Contains(message, phrase) })
}
