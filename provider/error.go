package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxErrorBody is the number of bytes kept of a failed answer's body. Providers'
// error objects are under 4 KiB; 64 KiB leaves room for a proxy's HTML page
// while a thousand failures at once stay under 64 MiB.
const MaxErrorBody = 64 << 10

// maxMessage bounds Error.Message in bytes: what a person reads on one line of
// a terminal or log, not a document.
const maxMessage = 1 << 10

// Error is a failed call in our own words. Only Kind is always set: a failure
// without an answer has Status 0 and Err, one with an answer has Status and
// what could be read from headers and body.
type Error struct {
	// Kind decides what happens next.
	Kind Kind
	// Provider names the provider that answered ("openai"); the text begins with it.
	Provider string
	// Status is the HTTP status, 0 if no answer came. A 200 that carried an
	// error object keeps its 200.
	Status int
	// Code, Type and Param are the provider's own words, "" where it gave
	// none. A prompt that is too long has the code "context_length_exceeded"
	// also where the provider says so only in prose.
	Code, Type, Param string
	// Message is the provider's prose, at most 1 KiB.
	Message string
	// RequestID is the id for which the provider's support asks.
	RequestID string
	// RetryAfter is the wait that the server asked for, between 0 and
	// MaxRetryAfter. It means something only if HasRetryAfter.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// OddWait names the header in which the server asked for an impossible wait: over
	// MaxRetryAfter, negative, or no duration at all. The wait then counts as unnamed. "" if
	// there is no such header.
	OddWait string
	// Slow says that the server minds the growth of the rate rather than the
	// rate (slow_down, acceleration limits): come back slower than usual.
	Slow bool
	// Unclear says that the server may mean a limit per minute or one per day
	// and does not say which. After the third in a row, take it for
	// QuotaExhausted.
	Unclear bool
	// Account says of QuotaExhausted and Unauthorized that the words concern the whole
	// account, or its key: other models of it are refused as well.
	Account bool
	// AskAgain says of Misfit that the item is to be asked once more: the maker of the error
	// bounds how often. A run with bounds of its own for that does not heed it.
	AskAgain bool
	// Quota is the limit that was hit, as the message describes it; zero if it
	// does not.
	Quota QuotaNote
	// Body is the answer's body as sent, at most MaxErrorBody bytes; nil if
	// there was none.
	Body []byte
	// Err is the cause where there is one: a Go error, or the user's own.
	Err error

	long bool // its prose says that the request is too long
}

// QuotaNote is a limit as an error message describes it. Fields that the
// message does not mention are zero.
type QuotaNote struct {
	// Limit, Used and Requested are in the unit that On names.
	Limit, Used, Requested float64
	// Per is the limit's period: "second", "min", "hour", "day" or "month".
	Per string
	// On is the dimension that is limited: "requests", "tokens", "input_tokens" or
	// "output_tokens".
	On Dimension
	// TryAgain is the wait that the message prints, at most MaxRetryAfter.
	TryAgain time.Duration
}

// Error returns one line: whose error, its kind, status, code and message. It
// never contains a request's headers, hence no key.
func (e *Error) Error() string {
	parts := make([]string, 0, 4)
	if e.Provider != "" {
		parts = append(parts, e.Provider)
	}
	parts = append(parts, e.Kind.String())
	if head := e.head(); head != "" {
		parts = append(parts, head)
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	} else if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// head returns the status and the code, or else the type, unless it only repeats the status or the
// kind.
func (e *Error) head() string {
	status := ""
	if e.Status != 0 {
		status = strconv.Itoa(e.Status)
	}
	word := e.Code
	if word == "" || word == status { // Google's code is the status once more
		word = e.Type
	}
	if word == e.Kind.String() { // it was just said
		word = ""
	}
	return strings.TrimSpace(status + " " + word)
}

// TooLong reports whether the request is too long for the model or the server.
func (e *Error) TooLong() bool {
	switch strings.ToLower(e.Code) {
	case tooLongCode, "exceed_context_size_error", "request_too_large", "string_above_max_length":
		return true
	}
	return e.long || e.Status == http.StatusRequestEntityTooLarge
}

// Is makes errors.Is(err, kind) true for the error's own kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Without returns a copy of the error with the secrets taken out of all its texts. A cause whose
// text has one in it is replaced, chain and all, by an error of the text without it.
func (e *Error) Without(secrets ...string) *Error {
	clean := *e
	for _, text := range []*string{&clean.Message, &clean.Code, &clean.Type, &clean.Param, &clean.RequestID} {
		*text = RedactText(*text, secrets...)
	}
	clean.Body = Redact(clean.Body, secrets...)
	if clean.Err != nil {
		if text := clean.Err.Error(); RedactText(text, secrets...) != text {
			clean.Err = errors.New(RedactText(text, secrets...))
		}
	}
	return &clean
}

// Unwrap returns the cause, nil if there is none.
func (e *Error) Unwrap() error { return e.Err }

// Permanent marks err as final, as no further try of the item can help: the result is an error
// of kind Invalid that wraps err. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: Invalid, Err: err}
}

// DoesNotFit says that an answer came, and that err is wrong with it: the result is an error of
// kind Misfit that wraps err. DoesNotFit(nil) is nil.
func DoesNotFit(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: Misfit, Err: err}
}

// RetryAfter says that the call behind err was throttled and that its lane must wait for d. The
// result is an error of kind Throttled that wraps err. A negative d counts as 0. A d over
// MaxRetryAfter, which no server can mean, counts as unnamed. RetryAfter(d, nil) is nil: a call
// that did not fail has nothing to wait for.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	if d > MaxRetryAfter {
		return &Error{Kind: Throttled, OddWait: d.String(), Err: err}
	}
	d = max(d, 0)
	return &Error{Kind: Throttled, RetryAfter: d, HasRetryAfter: true, Err: err}
}

// asError finds an *Error, or else a bare Kind, in err's chain.
func asError(err error) (*Error, bool) {
	var e *Error
	if errors.As(err, &e) && e != nil {
		return e, true
	}
	var k Kind
	if errors.As(err, &k) {
		return &Error{Kind: k, Err: err}, true
	}
	return nil, false
}

// clip shortens s to at most n bytes without splitting a character. It replaces the characters that
// would break a line of a terminal or a log by spaces.
func clip(s string, n int) string {
	if len(s) <= n && strings.IndexFunc(s, unusual) < 0 {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > n {
		cut := n
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	return strings.Join(strings.FieldsFunc(s, isBreak), " ")
}

// isBreak reports whether a rune separates words: a space, or a control character of a terminal.
func isBreak(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }

// unusual reports whether a rune is not one of the letters, digits and signs that words consist of.
func unusual(r rune) bool { return r <= ' ' || r > '~' }

// ClassifyErr says what a Go error of a call means; nil for nil. An *Error
// inside is returned as it is; a bare Kind, also as the cause of a cancelled
// context, names itself. A deadline is a Timeout. DNS, connections refused,
// reset or ended, and timeouts of connecting are TransportFault. Certificates,
// schemes and URLs are Misconfigured. Anything else is Unknown.
func ClassifyErr(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := asError(err); ok {
		return e
	}
	return &Error{Kind: kindOfError(err), Err: err}
}

// kindOfError returns the kind of a Go error in whose chain no kind is named.
func kindOfError(err error) Kind {
	switch {
	// Before the rest: net/http wraps these in errors that look like the network's.
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case isMisconfigured(err):
		return Misconfigured
	case isTransport(err):
		return TransportFault
	}
	return Unknown
}

// Plain returns the error that has ended a call without an answer. It leaves out the addresses
// of the connection, which differ from call to call. It returns any other error unchanged.
func Plain(err error) error {
	var (
		callErr    *Error
		urlErr     *url.Error
		opErr      *net.OpError
		syscallErr *os.SyscallError
	)
	if errors.As(err, &callErr) && callErr.Err != nil && callErr.Status == 0 && callErr.Message == "" {
		err = callErr.Err
	}
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	if errors.As(err, &opErr) && opErr.Op != "dial" && opErr.Op != opProxy { // of these the address is news
		err = opErr.Err
		if errors.As(err, &syscallErr) {
			err = syscallErr.Err
		}
	}
	return err
}

// opProxy is the operation of a net.OpError whose connection failed at a proxy: net/http's
// own word.
const opProxy = "proxyconnect"

// ErrUnsent is in the error of a call that its caller did not let leave; [Unsent] finds it.
var ErrUnsent = errors.New("provider: the call did not leave")

// Unsent reports whether a call certainly never reached the server: no connection to it
// was made, or it was not let go ([ErrUnsent]). So it drew nothing from a limit.
func Unsent(err error) bool {
	var (
		op  *net.OpError
		dns *net.DNSError
	)
	return errors.Is(err, ErrUnsent) || errors.As(err, &dns) || errors.As(err, &op) && (op.Op == "dial" || op.Op == opProxy)
}

// isMisconfigured reports whether an error would be the same at each try: of a certificate, a
// scheme, an address.
func isMisconfigured(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		roots        x509.SystemRootsError
		record       tls.RecordHeaderError
		address      *net.AddrError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &roots) || errors.As(err, &record) ||
		errors.As(err, &address) || errors.Is(err, http.ErrSchemeMismatch) ||
		isBadURL(err) || isRefusedHandshake(err)
}

// isBadURL reports whether an error says that the request cannot be made. net/http has no
// types for the last three.
func isBadURL(err error) bool {
	var (
		urlErr    *url.Error
		escapeErr url.EscapeError
		hostErr   url.InvalidHostError
	)
	if errors.As(err, &escapeErr) || errors.As(err, &hostErr) {
		return true
	}
	if !errors.As(err, &urlErr) {
		return false
	}
	text := urlErr.Err.Error()
	return urlErr.Op == "parse" || strings.Contains(text, "unsupported protocol scheme") ||
		strings.Contains(text, "no Host in request URL") || strings.Contains(text, "invalid header field")
}

// isRefusedHandshake reports whether one side ended the handshake by rule: no common
// version or cipher, a client certificate missing. crypto/tls exports no type
// for an alert over TCP; its errors begin with "tls: ". An alert that speaks of
// a moment (internal error, bad record) is left to isTransport.
func isRefusedHandshake(err error) bool {
	var opErr *net.OpError
	if errors.As(err, &opErr) && (opErr.Op == "remote error" || opErr.Op == "local error") {
		for _, transient := range [...]string{"internal error", "bad record", "user canceled", "decode error"} {
			if strings.Contains(opErr.Err.Error(), transient) {
				return false
			}
		}
		return true
	}
	return strings.Contains(err.Error(), "tls: server selected unsupported") ||
		strings.Contains(err.Error(), "tls: no supported versions")
}

// isTransport reports whether an error is a fault of the network. Any other error that
// http.Client.Do itself returns counts as one, too: HTTP/2 and broken connections have no exported
// types.
func isTransport(err error) bool {
	var (
		network net.Error // net.OpError, DNSError, timeouts; also url.Error
		syntax  *json.SyntaxError
	)
	return errors.As(err, &network) || errors.As(err, &syntax) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE) ||
		isHTTP2(err)
}

// isHTTP2 finds a stream or connection that HTTP/2 ended while a body was read.
// Their types are internal to net/http.
func isHTTP2(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "http2: ") || strings.HasPrefix(text, "stream error: ") ||
		strings.HasPrefix(text, "connection error: ") || strings.HasPrefix(text, "malformed HTTP ")
}
