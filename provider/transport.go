package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Transport is an http.RoundTripper that reports to the Recorder in a request's context. It
// reports the headers of each response, of failed ones too, and of a good answer its usage and
// why it ended. It changes nothing: any SDK works over it. Requests whose context carries no
// Recorder pass through.
//
// The usage is known once the answer was read or closed. The answer must be one JSON value of
// at most MaxHeard bytes that comes unpacked, or that Base unpacks. The usage of a stream is not
// known.
type Transport struct {
	// Base does the work; nil means http.DefaultTransport, which keeps two
	// idle connections per host only. See NewHTTPTransport.
	Base http.RoundTripper
	// HeadersOnly leaves good answers' bodies alone; otherwise they are kept until they have
	// come whole. HeadersOnly is for clients that report their usage to the Recorder
	// themselves.
	HeadersOnly bool
}

// RoundTrip does what Base does.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	rec := RecorderFrom(req.Context())
	if req.Context().Err() == nil {
		rec.sent(req)
	}
	resp, err := t.base().RoundTrip(req)
	if resp == nil || rec == nil {
		return resp, err
	}
	rec.Response(resp.StatusCode, resp.Header)
	t.watch(resp, rec)
	return resp, err
}

// CloseIdleConnections closes those of Base, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// The times of NewHTTPTransport, all of them about connections. The attempt's timeout bounds
// the time of an answer; the transport does not know it.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	keepAlive        = 30 * time.Second
	// idleTimeout is under the 120 s after which common load balancers drop an
	// idle connection without a word.
	idleTimeout = 90 * time.Second
	// A dead HTTP/2 connection takes many calls with it, and has to be found within half a minute:
	// pingAfter and pingTimeout together are less. pingAfter is the silence after which the
	// server is asked for a sign of life. A model that thinks is silent for longer, and its server
	// answers all the same; much less would bother servers that count pings.
	pingAfter = 15 * time.Second
	// pingTimeout bounds the wait for the answer to a ping. The answer is a few bytes, which come
	// within a second on any way that works; ten outlast a lost packet that is sent four times.
	pingTimeout = 10 * time.Second
	// maxUnread is the number of bytes of an answer that HTTP/2 takes in before its call has
	// read them. A call that waits for room does not read. Go's default is 4 MiB for each call.
	// Over a distance of 100 ms it lets in 10 MB a second for each call.
	maxUnread = 1 << 20
	// maxHeader bounds a response's headers in bytes; Go's default is 10 MiB.
	maxHeader = 1 << 20
)

// NewHTTPTransport returns a transport that keeps up to conns connections per
// host open, as many as there are calls in flight. (The default keeps 2: a
// thousand workers then open a new TLS connection for nearly every call.) It
// sets no timeout on answers. A conns under 1 counts as 1.
func NewHTTPTransport(conns int) *http.Transport {
	conns = max(conns, 1)
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		OnProxyConnectResponse: refusedByProxy,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           conns,
		MaxIdleConnsPerHost:    conns,
		IdleConnTimeout:        idleTimeout,
		TLSHandshakeTimeout:    handshakeTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeader,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, MaxReceiveBufferPerStream: maxUnread},
	}
}

// refusedByProxy turns a proxy's answer into an error that names the proxy. net/http would
// give its status alone, which looks like the provider's.
func refusedByProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	err := &net.OpError{Op: opProxy, Net: "tcp", Err: errors.New(clip("the proxy at "+proxy.Host+" answers "+resp.Status, maxWord))}
	if resp.StatusCode == http.StatusProxyAuthRequired {
		return &Error{Kind: Misconfigured, Err: err}
	}
	return err
}

// maxRedirects is net/http's own bound.
const maxRedirects = 10

// RefuseForeignRedirect is an http.Client.CheckRedirect that follows a redirect
// only within the host, port and scheme of the first request, and only if the
// request stays what it was: elsewhere the key would leak, and a POST that
// becomes a GET has lost its body. The error is of kind Misconfigured, as the base
// URL is not the API's, and wraps a *RedirectError.
func RefuseForeignRedirect(req *http.Request, via []*http.Request) error {
	if len(via) == 0 {
		return nil
	}
	first := via[0]
	var refused RedirectError
	switch {
	case len(via) >= maxRedirects:
		refused.why = "too many redirects"
	case origin(req.URL) != origin(first.URL):
		refused = RedirectError{Foreign: true, why: redirectText(req.URL, first.URL)}
	case req.Method != first.Method:
		refused.why = clip("redirect to "+req.URL.Path+", which drops the request's body, refused", maxWord)
	default:
		return nil
	}
	return &Error{Kind: Misconfigured, Err: &refused}
}

// RedirectError is a redirect that is not followed.
type RedirectError struct {
	Foreign bool // it leads to another host, port or scheme
	why     string
}

// Error names the address that the redirect leads to.
func (e *RedirectError) Error() string { return e.why }

// redirectText returns a sentence about a refused redirect that names the place it leads to.
func redirectText(to, from *url.URL) string {
	switch {
	case to.Hostname() != from.Hostname():
		return "redirect to another host refused: " + origin(to)
	case to.Scheme != from.Scheme:
		return fmt.Sprintf("redirect from %s to %s refused: try %s://%s", from.Scheme, to.Scheme, to.Scheme, to.Host)
	}
	return "redirect to another port refused: " + origin(to)
}

// origin returns scheme, host and port, with the scheme's own port written out.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port)
}

// MaxHeard bounds, in bytes, the part of a good answer that Transport keeps to read its usage
// once the answer has come whole. Chats are a hundredth of that. Of a longer answer the usage
// is not known: only embeddings of some two hundred texts are that long.
const MaxHeard = 8 << 20

// watch lets the Recorder see an answer's body as its owner reads it. Nothing is read
// ahead, so the owner's timing and errors are its own.
func (t *Transport) watch(resp *http.Response, rec *Recorder) {
	switch resp.Body.(type) {
	case nil, *failedBody, *goodBody: // a Transport below this one listens already
		return
	}
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		resp.Body = &failedBody{ReadCloser: resp.Body, rec: rec}
	case resp.StatusCode/100 == 2 && !t.HeadersOnly && maybeJSON(resp.Header):
		resp.Body = &goodBody{ReadCloser: resp.Body, rec: rec, status: resp.StatusCode}
	}
}

// maybeJSON reports whether a body may be JSON as it comes: some servers name no type, or
// a text's. A body that its reader must unpack is not.
func maybeJSON(h http.Header) bool {
	kind := headerValue(h, "Content-Type")
	return headerValue(h, "Content-Encoding") == "" &&
		(kind == "" || strings.Contains(kind, "json") || strings.HasPrefix(kind, "text/plain"))
}

// failedBody is a failed answer's body that the Recorder sees.
type failedBody struct {
	io.ReadCloser
	rec *Recorder
}

func (o *failedBody) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if n > 0 {
		o.rec.errorBody(p[:n])
	}
	return n, err
}

// goodBody is a good answer's body. It passes the answer to the Recorder once it has come whole.
type goodBody struct {
	io.ReadCloser
	rec    *Recorder
	status int

	mu      sync.Mutex // a body may be closed while it is read
	kept    []byte
	tooLong bool // it is too long to be kept
}

func (b *goodBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.keep(p[:n], err == io.EOF)
	return n, err
}

// Close passes on what was kept: a decoder stops after the value, and never sees the end.
func (b *goodBody) Close() error {
	b.keep(nil, true)
	return b.ReadCloser.Close()
}

// keep adds the bytes that were read to those before. An answer over MaxHeard is not kept at all. At
// the end the Recorder gets the answer, if it is good or reports a usage.
func (b *goodBody) keep(data []byte, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tooLong = b.tooLong || len(b.kept)+len(data) > MaxHeard; b.tooLong {
		b.kept = nil
		return
	}
	if b.kept = append(b.kept, data...); !last {
		return
	}
	if reply, e := ReplyOf(b.status, nil, b.kept); e == nil || reply.HasUsage {
		b.rec.addAnswer(&reply)
	}
	b.kept = nil // so that nothing is passed on a second time
}
