package provider_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
)

// A Go error is classified by what is inside it, however deep.
func TestClassifyErr(t *testing.T) {
	post := func(err error) error { return &url.Error{Op: "Post", URL: "http://host/v1", Err: err} }
	own := &provider.Error{Kind: provider.Refused, Message: "m"}
	_, parse := url.Parse("http://a b") //nolint:staticcheck // the error is what is wanted
	syntax := json.Unmarshal([]byte("<"), new(int))
	_, scheme := new(http.Client).Get("gopher://host")
	for _, c := range []struct {
		err  error
		want provider.Kind
	}{
		{errors.New("odd"), provider.Unknown},
		{context.Canceled, provider.Canceled},
		{post(context.Canceled), provider.Canceled},
		{post(context.DeadlineExceeded), provider.Timeout},
		{fmt.Errorf("call: %w", own), provider.Refused},
		{fmt.Errorf("call: %w", provider.Throttled), provider.Throttled},
		{provider.Permanent(errors.New("no")), provider.Invalid},
		{provider.RetryAfter(time.Second, errors.New("slow")), provider.Throttled},
		{post(&net.DNSError{Err: "no such host", IsNotFound: true}), provider.TransportFault},
		{post(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), provider.TransportFault},
		{post(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), provider.TransportFault},
		{syscall.EPIPE, provider.TransportFault},
		{io.EOF, provider.TransportFault},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), provider.TransportFault},
		{post(errors.New("net/http: TLS handshake timeout")), provider.TransportFault},
		{post(errors.New("http2: server sent GOAWAY")), provider.TransportFault},
		{errors.New("stream error: stream ID 1; INTERNAL_ERROR"), provider.TransportFault},
		{syntax, provider.TransportFault},
		{post(x509.UnknownAuthorityError{}), provider.Misconfigured},
		{post(x509.HostnameError{Certificate: new(x509.Certificate)}), provider.Misconfigured},
		{post(x509.CertificateInvalidError{Reason: x509.Expired}), provider.Misconfigured},
		{post(&tls.CertificateVerificationError{Err: errors.New("x")}), provider.Misconfigured},
		{post(tls.RecordHeaderError{}), provider.Misconfigured},
		{post(http.ErrSchemeMismatch), provider.Misconfigured},
		{post(&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}), provider.Misconfigured},
		{post(&net.OpError{Op: "remote error", Err: errors.New("tls: internal error")}), provider.TransportFault},
		{post(errors.New(`net/http: invalid header field value for "Authorization"`)), provider.Misconfigured},
		{scheme, provider.Misconfigured},
		{parse, provider.Misconfigured},
	} {
		if e := provider.ClassifyErr(c.err); e.Kind != c.want {
			t.Errorf("%v: %v, want %v", c.err, e.Kind, c.want)
		}
	}
	if provider.ClassifyErr(nil) != nil {
		t.Error("no error was classified")
	}
	if e := provider.ClassifyErr(fmt.Errorf("call: %w", own)); e != own {
		t.Error("an Error inside was not returned as it is")
	}
}

// errors.Is asks for the kind and for the cause, and the texts follow the form
// "whose: kind: status code: message".
func TestErrorTextAndChain(t *testing.T) {
	cause := errors.New("boom")
	for _, c := range []struct {
		err  error
		text string
	}{
		{&provider.Error{Kind: provider.Throttled, Provider: "openai", Status: 429, Code: "rate_limit_exceeded", Message: "Too fast"}, "openai: throttled: 429 rate_limit_exceeded: Too fast"},
		{&provider.Error{Kind: provider.Throttled, Status: 429, Code: "429", Type: "RESOURCE_EXHAUSTED"}, "throttled: 429 RESOURCE_EXHAUSTED"},
		{&provider.Error{Kind: provider.Server, Status: 500}, "server: 500"},
		{&provider.Error{Kind: provider.TransportFault, Provider: "openai", Err: cause}, "openai: transport: boom"},
		{provider.Permanent(cause), "invalid: boom"},
	} {
		if c.err.Error() != c.text {
			t.Errorf("%q, want %q", c.err, c.text)
		}
	}
	err := fmt.Errorf("item 7: %w", provider.Permanent(cause))
	if !errors.Is(err, provider.Invalid) || !errors.Is(err, cause) || errors.Is(err, provider.Server) {
		t.Errorf("%v is not invalid, its cause, and nothing else", err)
	}
	if provider.Permanent(nil) != nil || provider.RetryAfter(time.Second, nil) != nil {
		t.Error("no error was made into one")
	}
}

// RetryAfter's wait has the bounds of a header's: what no server can mean is not named.
func TestRetryAfterIsBounded(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 0: 0, time.Minute: time.Minute, provider.MaxRetryAfter: provider.MaxRetryAfter, 1000 * time.Hour: -1,
	} {
		e := provider.ClassifyErr(provider.RetryAfter(d, io.EOF))
		named := want >= 0
		if e.RetryAfter != max(0, want) || e.HasRetryAfter != named || (e.OddWait == "") != named || e.Kind != provider.Throttled || !errors.Is(e, io.EOF) {
			t.Errorf("%v became %v, %v, odd %q", d, e.RetryAfter, e.HasRetryAfter, e.OddWait)
		}
	}
}

// A message of any length or content is one bounded, printable line.
func TestMessagesAreBoundedLines(t *testing.T) {
	long := `{"error":{"message":"a\nb\u0000\u001b[31mc` + strings.Repeat("é", 5000) + `","code":"` + strings.Repeat("c", 5000) + `"}}`
	e := provider.Classify(500, nil, []byte(long))
	if len(e.Message) > 1024 || !strings.HasPrefix(e.Message, "a b [31mcéé") {
		t.Errorf("message of %d bytes: %.40q", len(e.Message), e.Message)
	}
	if len(e.Code) > 256 {
		t.Errorf("a code of %d bytes", len(e.Code))
	}
	e = provider.Classify(500, nil, []byte(strings.Repeat("x", 1<<20)))
	if len(e.Body) != provider.MaxErrorBody || len(e.Message) > 1024 {
		t.Errorf("%d bytes of body, %d of message", len(e.Body), len(e.Message))
	}
}

// The message is what the server says, wherever it says it; a page is named by
// its title.
func TestMessages(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"m"}}`: "m", `{"error":"m"}`: "m", `"m"`: "m", `{"message":"m"}`: "m", `{"Message":"m"}`: "m",
		`{"detail":"m"}`: "m", `{"detail":[{"msg":"m"}]}`: "m", `[{"error":{"message":"m"}}]`: "m",
		`{"error":{"message":["m","n"]}}`: "m", `{"error":{"message":"m","metadata":{"raw":"n"}}}`: "m: n",
		"404 page not found\n": "404 page not found", `{"error":{"message":"cut`: `{"error":{"message":"cut`,
		"<html><head><TITLE>502 Bad\nGateway</TITLE>": "an HTML page: 502 Bad Gateway", "<p>": "an HTML page", "": "",
	} {
		if e := provider.Classify(502, nil, []byte(body)); e.Message != want {
			t.Errorf("%s: %q, want %q", body, e.Message, want)
		}
	}
}

// Plain drops the addresses of a connection that was made, which differ from call to call, and
// keeps those of one that was not.
func TestPlain(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 54716}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443}
	post := func(err error) error { return &url.Error{Op: "Post", URL: "http://127.0.0.1/v1", Err: err} }
	op := func(op string, err error) error {
		return &net.OpError{Op: op, Net: "tcp", Source: here, Addr: there, Err: err}
	}
	reset := os.NewSyscallError("read", syscall.ECONNRESET)
	for want, err := range map[string]error{
		"connection reset by peer": post(op("read", reset)),
		"EOF":                      post(io.EOF),
		"use of closed connection": op("write", errors.New("use of closed connection")),
		"dial tcp 127.0.0.1:54716->127.0.0.1:443: connect: connection refused": post(op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED))),
		"odd: of another kind": fmt.Errorf("odd: %w", errors.New("of another kind")),
		"unexpected EOF":       &provider.Error{Kind: provider.TransportFault, Err: post(io.ErrUnexpectedEOF)},
	} {
		if got := provider.Plain(err).Error(); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	said := &provider.Error{Kind: provider.Server, Status: 500, Message: "it broke", Err: errors.New("more")}
	if !errors.Is(provider.Plain(said), said) {
		t.Errorf("%v is made %v", said, provider.Plain(said))
	}
}
