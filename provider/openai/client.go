package openai

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/provider"
)

// Defaults of Config.
const (
	// DefaultBaseURL is OpenAI's own.
	DefaultBaseURL = "https://api.openai.com/v1"
	// DefaultConns is the command's default concurrency.
	DefaultConns = 64
	// DefaultMaxBody is as long as an input line may be. The largest answers in
	// use, embeddings of 2,048 texts, are near 60 MiB.
	DefaultMaxBody = 64 << 20
	// DefaultMaxBodies is four times that: four of the longest answers at once, or
	// two thousand of 64 KiB more than are read without asking.
	DefaultMaxBodies = 256 << 20
)

// apiPath is the version that OpenAI's paths begin with. An endpoint may have it
// and the base URL may have it; the joined URL has it once.
const apiPath = "/v1"

// name begins every error of this package.
const name = "openai"

// Config says whom to call and how. Its zero value calls OpenAI without a key.
type Config struct {
	// APIKey is sent as a bearer token; "" sends none, as local servers like it.
	// Spaces and line ends around it, as files and shells leave them, are cut off.
	APIKey string
	// BaseURL includes the version (default DefaultBaseURL). One without any
	// path gets /v1. It may have no user, query or fragment.
	BaseURL string
	// Organization is sent as OpenAI-Organization if set.
	Organization string
	// HTTPClient is used as it is but for two things: its transport is wrapped,
	// so that headers are recorded, and it follows no redirect to another host.
	// If nil, one is made over Transport.
	HTTPClient *http.Client
	// Transport is used if HTTPClient is nil. If it is nil too,
	// provider.NewHTTPTransport(Conns) is.
	Transport http.RoundTripper
	// Conns is how many idle connections are kept (default DefaultConns): as
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
	// HoldBodies makes MaxBodies bound also what was read and is still in use: a long
	// answer of Do has its room until its Reply's Done is called. Each must be, whatever
	// becomes of the answer, and without waiting for another call.
	HoldBodies bool
}

// Client makes calls. It may be used by many goroutines at once and has none of
// its own but those of its connections.
type Client struct {
	api     *openai.Client
	http    *http.Client
	foreign bool // http is made of the user's parts: its transport may change what it is given
	base    string
	key     string
	maxBody int64
	room    *room // for answers that are long
	hold    bool  // they have it until they are done with

	blanks map[string]*http.Request // for each endpoint, without the version; not to be changed
}

// New checks the configuration and makes a client. No call is made. An error is
// of kind Misconfigured and does not contain the key.
func New(cfg Config) (*Client, error) {
	base, err := baseURL(cfg.BaseURL)
	if err != nil {
		return nil, misconfigured(err)
	}
	key := strings.TrimSpace(cfg.APIKey)
	if strings.ContainsFunc(key+cfg.Organization, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, misconfigured(errors.New("the key or the organization has a character that no header may have"))
	}
	c := &Client{
		http: httpClient(cfg), foreign: cfg.HTTPClient != nil || cfg.Transport != nil,
		base: base, key: key, maxBody: cfg.MaxBody,
	}
	if c.blanks, err = blanks(base, headers(key, cfg.Organization)); err != nil {
		return nil, misconfigured(err)
	}
	if c.maxBody <= 0 {
		c.maxBody = DefaultMaxBody
	}
	if cfg.MaxBodies <= 0 {
		cfg.MaxBodies = DefaultMaxBodies
	}
	c.room, c.hold = newRoom(cfg.MaxBodies, c.maxBody), cfg.HoldBodies
	api := openai.DefaultConfig(key)
	api.BaseURL, api.OrgID, api.HTTPClient = base, cfg.Organization, doer{c}
	c.api = openai.NewClientWithConfig(api)
	return c, nil
}

// CloseIdle closes the connections that no call uses. A program that ends needs
// not do it; a test that looks for goroutines must.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// String hides the key from %v.
func (c *Client) String() string { return "openai client for " + c.base }

// GoString hides the key from %#v.
func (c *Client) GoString() string { return c.String() }

func misconfigured(err error) error {
	return &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: err}
}

// baseURL checks and completes a base URL. Its errors do not quote it: a wrong
// one may have a key in it.
func baseURL(s string) (string, error) {
	if s == "" {
		return DefaultBaseURL, nil
	}
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return "", errors.New("base URL: it does not parse as a URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("base URL: it must begin with http:// or https://")
	case u.Hostname() == "":
		return "", errors.New("base URL: it names no host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("base URL: it may have no user, query or fragment; the key is given apart")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = apiPath
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// httpClient makes a client whose responses are recorded and whose redirects
// stay at home. The given one is copied, not changed.
func httpClient(cfg Config) *http.Client {
	var h http.Client
	if cfg.HTTPClient != nil {
		h = *cfg.HTTPClient
	} else {
		h.Transport = cfg.Transport
		if h.Transport == nil {
			conns := cfg.Conns
			if conns <= 0 {
				conns = DefaultConns
			}
			h.Transport = provider.NewHTTPTransport(conns)
		}
	}
	h.Transport = &provider.Transport{Base: h.Transport, HeadersOnly: true}
	h.CheckRedirect = redirects(h.CheckRedirect)
	return &h
}

// redirects refuses what leads away, then asks the user's own policy.
func redirects(own func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
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

// paths are those that a call may have, without the version.
var paths = [...]string{
	"/chat/completions", "/embeddings", "/responses", "/completions",
	"/messages", // Anthropic's, which vLLM and some gateways have beside OpenAI's
}

// blank is the request of an endpoint's calls. Only known paths pass, so that no line
// of an input can send the key anywhere else.
func (c *Client) blank(endpoint string) (*http.Request, error) {
	req := c.blanks[strings.TrimPrefix(endpoint, apiPath)]
	if req == nil {
		return nil, fmt.Errorf("endpoint %.64q is not one of /v1/chat/completions, /v1/embeddings, /v1/responses, /v1/completions, /v1/messages", endpoint)
	}
	return req, nil
}
