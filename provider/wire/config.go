package wire

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

// Defaults of Config.
const (
	// DefaultConns is the command's default concurrency.
	DefaultConns = 64
	// DefaultMaxBody is as long as an input line may be. The largest answers in
	// use, embeddings of 2,048 texts, are near 60 MiB.
	DefaultMaxBody = 64 << 20
	// DefaultMaxBodies is four times that: four of the longest answers at once, or
	// two thousand of 64 KiB more than are read without asking.
	DefaultMaxBodies = 256 << 20
)

// Config says whom to call and how. Dialect and BaseURL are needed; the zero value of the
// rest is usable.
type Config struct {
	Dialect provider.Dialect
	// Name names the provider in errors (default: the dialect's).
	Name string
	// BaseURL includes the version. One without any path gets the dialect's Root. It may
	// have no user, query or fragment.
	BaseURL string
	// Path makes a vendor's own address of the dialect's path: {path} stands for that, and
	// {model} for the model, escaped. "" is {path}.
	Path string
	// StreamPath is Path for answers that come as streams; "" is Path.
	StreamPath string
	// InBody is a member of a JSON object, such as "a":"b", that a body has in place of its model,
	// if the address names the model; "" leaves bodies as they are. A body with a member of that
	// name of its own keeps it.
	InBody string
	// Tier is a member of a JSON object, such as "service_tier":"flex", that every body gets which
	// asks for words; "" leaves bodies as they are. A body with such a member of its own keeps it.
	Tier string
	// Serves lists the operations of the dialect that the server has; nil: all of them. A
	// request for another is refused before it is sent.
	Serves []string
	// Auth proves who calls; nil: no proof is needed.
	Auth auth.Source
	// Header holds the headers of every request besides those of Auth and the content type; nil:
	// those of the dialect's Header, if it has one.
	Header http.Header
	// Wording is the vendor's own; nil: it has none.
	Wording *provider.Wording
	// Timeout is the longest time that a good answer takes, if it is longer than usual; 0: it is not.
	// The client does not enforce it: pass Client.Timeout to batch.WithAttemptTimeout.
	Timeout time.Duration
	// Stream says which answers are taken as streams, of a dialect that is a
	// [provider.Streamer]. The answer is put together into the body that the plain endpoint would
	// have sent. The request's body does not ask for the stream: Client.Do adds that.
	Stream StreamWhen
	// StreamOver is a bound on output, in tokens. StreamAuto takes an answer as a stream if its
	// request allows more; 0: it takes none.
	StreamOver int
	// StreamIdle bounds the silence of a stream after its first byte (default
	// DefaultStreamIdle; negative: no bound). It is the only clock from then on: the attempt's
	// is stopped.
	StreamIdle time.Duration
	// Text makes the client read the words of a good answer into Reply.Text.
	Text bool
	// Heard is called with the headers of each answer, by the goroutine of its call; nil: nobody
	// listens. It must not keep or change them.
	Heard func(http.Header)

	// HTTPClient is used as it is, with two exceptions. Its transport is wrapped, so that
	// headers are recorded, and it follows no redirect to another host. If nil, one is made
	// over Transport.
	HTTPClient *http.Client
	// Transport is used if HTTPClient is nil. If it is nil too,
	// provider.NewHTTPTransport(Conns) is, and calls share connections of HTTP/2.
	Transport http.RoundTripper
	// TLS says which authorities the client's own transport trusts, and which certificates it
	// shows; nil: those of the system, and none. It is for no other transport.
	TLS *tls.Config
	// Conns is the number of idle connections that are kept (default DefaultConns): as
	// many as there are calls in flight.
	Conns int
	// MaxBody bounds an answer in bytes after decompression (default
	// DefaultMaxBody). A longer one is a failure of kind Invalid: another try
	// would be paid for again and be as long.
	MaxBody int64
	// MaxBodies bounds the bytes of all answers that are read at once, after
	// decompression (default DefaultMaxBodies). Beyond it answers wait for others to
	// end; none fails for that, but the wait is a part of its call's time. The first
	// 64 KiB of each do not count: ordinary answers never wait. If it is less than
	// twice MaxBody, one answer at a time may go beyond half of it, so that all end. For
	// the moment in which an answer is put together it takes its length twice.
	MaxBodies int64
	// HoldBodies makes MaxBodies also bound answers that were read and are still in use. A long
	// answer of Do has its room until its Reply's Done is called. Done must be called for each
	// answer, whatever becomes of it, and without waiting for another call.
	HoldBodies bool
}

// withDefaults returns the configuration with its defaults. Negative numbers of bytes and
// connections count as unset. A negative StreamIdle stays: it means no bound.
func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, c.Dialect.Name())
	c.Path = cmp.Or(c.Path, "{path}")
	c.StreamPath = cmp.Or(c.StreamPath, c.Path)
	c.StreamIdle = cmp.Or(c.StreamIdle, DefaultStreamIdle)
	c.MaxBody, c.MaxBodies = max(c.MaxBody, 0), max(c.MaxBodies, 0)
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	c.MaxBodies = cmp.Or(c.MaxBodies, DefaultMaxBodies)
	if c.Conns <= 0 {
		c.Conns = DefaultConns
	}
	if c.Auth == nil {
		c.Auth = auth.None{}
	}
	// own is the dialect, seen as one with headers of its own.
	if own, has := c.Dialect.(interface{ Header() http.Header }); has && c.Header == nil {
		c.Header = own.Header()
	}
	return c
}

// baseURL checks and completes a base URL. Its errors do not quote it: a wrong
// one may have a key in it.
func baseURL(text, root string) (string, error) {
	parsed, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return "", errors.New("base URL: it does not parse as a URL")
	}
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return "", errors.New("base URL: it must begin with http:// or https://")
	case parsed.Hostname() == "":
		return "", errors.New("base URL: it names no host")
	case parsed.User != nil || parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return "", errors.New("base URL: it must not have a user, query or fragment; the key is set separately")
	}
	if strings.Trim(parsed.Path, "/") == "" {
		parsed.Path = root
	}
	return strings.TrimRight(parsed.String(), "/"), nil
}

// httpClient returns a client whose responses are recorded and whose redirects stay with the host of
// the base URL. It copies the configured client, and does not change it.
func httpClient(cfg Config) *http.Client {
	var client http.Client
	if cfg.HTTPClient != nil {
		client = *cfg.HTTPClient
	} else {
		client.Transport = cfg.Transport
		if client.Transport == nil {
			transport := provider.NewHTTPTransport(cfg.Conns)
			transport.TLSClientConfig = cfg.TLS.Clone()
			client.Transport = newPool(transport, cfg.BaseURL)
		}
	}
	client.Transport = &provider.Transport{Base: client.Transport, HeadersOnly: true}
	client.CheckRedirect = redirectPolicy(client.CheckRedirect)
	return &client
}

// redirectPolicy returns a policy that refuses redirects to other hosts, and then asks the user's own
// policy.
func redirectPolicy(own func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if err := provider.RefuseForeignRedirect(req, via); err != nil {
			return err
		}
		if own != nil {
			return own(req, via)
		}
		return nil
	}
}
