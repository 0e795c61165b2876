package verdict

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

func broken(err error) error {
	return &provider.Error{Kind: provider.TransportFault, Provider: "openai", Err: &url.Error{Op: "Post", URL: "https://h/v1", Err: err}}
}

// overHTTP is broken at an address that begins with http://.
func overHTTP(err error) error {
	return &provider.Error{Kind: provider.TransportFault, Provider: "openai", Err: &url.Error{Op: "Post", URL: "http://h/v1", Err: err}}
}

// redirected is refused, on its way from one URL to another.
func redirected(from, to, method string) error {
	request := func(method, at string) *http.Request {
		u, err := url.Parse(at)
		if err != nil {
			panic(err)
		}
		return &http.Request{Method: method, URL: u}
	}
	return provider.RefuseForeignRedirect(request(method, to), []*http.Request{request("POST", from)})
}

// Each thing that keeps calls from being answered is named, with what may be done.
func TestReasonsAndWhatToCheck(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	invalid := &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}
	for _, c := range []struct {
		err            error
		reason, advice string
	}{
		{broken(refused), "dial tcp: connection refused", "nobody listens there"},
		{broken(&net.OpError{Op: "proxyconnect", Net: "tcp", Err: refused}), "proxyconnect tcp: dial tcp: connection refused", "NO_PROXY exempts a host"},
		{broken(&net.DNSError{Err: "no such host", Name: "api.exmaple.com"}), "lookup api.exmaple.com: no such host", "api.exmaple.com is not found"},
		{broken(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), "certificate signed by unknown authority", "--ca-file"},
		{broken(&tls.CertificateVerificationError{Err: x509.HostnameError{Host: "h", Certificate: &x509.Certificate{}}}), "x509: ", "the certificate is for another"},
		{broken(invalid), "x509: certificate has expired", "the clock here is wrong"},
		{broken(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), "first record", "try http://"},
		{broken(errors.New("stream error")), "stream error", "check --base-url and the network"},
		{&provider.Error{Kind: provider.TransportFault, Status: 403, Message: "an HTML page: Blocked"}, "403 with an HTML page: Blocked", "firewall or proxy on the way"},
		{&provider.Error{Kind: provider.TransportFault, Status: 200}, "200 with an empty body", "not the API"},
		{&provider.Error{Kind: provider.TransportFault, Status: 200, Err: errors.New("the stream fell silent for 1m0s")}, "200, then the stream fell silent for 1m0s", "--stream-idle"},
		{&provider.Error{Kind: provider.TransportFault, Status: 200, Err: io.ErrUnexpectedEOF}, "200, then unexpected EOF", "answers break off"},
		{&provider.Error{Kind: provider.Server, Status: 200, Code: "server_error", Message: "had an error"}, "server: 200 server_error: had an error", "is down"},
		{&provider.Error{Kind: provider.Timeout, Message: "no answer within 2s"}, "timeout: no answer within 2s", "raise --timeout"},
		{&provider.Error{Kind: provider.Server, Status: 502, Message: "bad gateway"}, "server: 502: bad gateway", "is down"},
		{&provider.Error{Kind: provider.Misconfigured, Status: 400, Message: "sent to HTTPS port"}, "sent to HTTPS port", "try https://"},
		{errors.New("batch: oh"), "oh", "check --base-url"},
		{&provider.Error{Kind: provider.ModelNotFound, Provider: "openai", Status: 404, Code: "model_not_found", Message: "there is no m"}, "openai: model_not_found: 404: there is no m", ""},
		{redirected("http://h/v1", "https://h/v1", "POST"), "try https://h", "use it as --base-url"},
		{redirected("http://h/v1", "http://other/v1", "POST"), "http://other:80", "use it as --base-url"},
		{redirected("http://h/v1", "http://h/login", "GET"), "redirect to /login, which drops the request's body, refused", "whose path often ends in /v1"},
		{overHTTP(errors.New(`malformed HTTP response "\x15\x03\x01\x00\x02\x02P"`)), "malformed HTTP response", "try https:// in --base-url: the server does not speak http there"},
		{overHTTP(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}), "connection reset by peer", "if the server speaks https, try https:// in --base-url"},
		{overHTTP(io.EOF), "EOF", "if the server speaks https, try https:// in --base-url"},
	} {
		gone := fmt.Errorf("%w: %w", batch.ErrNoAnswer, c.err)
		if got := ReasonOf(c.err); !strings.Contains(got, c.reason) || strings.Contains(got, "https://h/v1") {
			t.Errorf("%v: reason %q, want %q", c.err, got, c.reason)
		}
		if got := ReasonOf(gone); !strings.HasPrefix(got, "no call was ever answered: ") || !strings.Contains(got, c.reason) {
			t.Errorf("%v: reason %q", gone, got)
		}
		if got := whatToCheck(gone); !strings.Contains(got, c.advice) {
			t.Errorf("%v: %q, want %q", c.err, got, c.advice)
		}
	}
	if got := ReasonOf(nil); got != "" {
		t.Errorf("%q for nothing", got)
	}
	inBody := &provider.Error{Kind: provider.Canceled, Provider: "openai", Status: 200, Err: errors.New("batch: item timeout")}
	if got := ReasonOf(inBody); got != "item timeout" {
		t.Errorf("%q, want the same as before an answer", got)
	}
}

// A reason is one line that a terminal can show, whatever a server or a certificate says,
// and not a long one; of a refused key it repeats nothing.
func TestReasonsAreShort(t *testing.T) {
	wild := broken(errors.New("x509: valid for \x1b]0;title\x07\n\u202e" + strings.Repeat("é", 5000)))
	if got := ReasonOf(wild); utf8.RuneCountInString(got) > maxReason || strings.ContainsAny(got, "\x1b\x07\n\u202e") {
		t.Errorf("%q", got)
	}
	key := &provider.Error{Kind: provider.Unauthorized, Provider: "openai", Status: 401, Code: "invalid_api_key", Message: "wrong key: sk-live-a***z"}
	if got := ReasonOf(&provider.Error{
		Provider: "xai", Kind: provider.Unauthorized, Status: 400, Code: "Client specified an invalid argument", Message: "Incorrect API key provided: na***ys.",
	}); got != "xai refuses the key: 400" {
		t.Errorf("a code that is a sentence: %q", got)
	}
	if got := ReasonOf(key); got != "openai refuses the key: 401 invalid_api_key" {
		t.Error(got)
	}
	r := factsWith(t, map[string]string{"OPENAI_API_KEY": "sk-live-abcdefghij"})
	if got := r.Reason(broken(errors.New("no such host sk-live-abcdefghij"))); strings.Contains(got.Error(), "abcdefghij") {
		t.Error(got)
	}
}
