package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/wire"
)

// Defaults of Config.
const (
	// DefaultBaseURL is OpenAI's own.
	DefaultBaseURL = "https://api.openai.com/v1"
	// DefaultConns, DefaultMaxBody and DefaultMaxBodies are the defaults of every client.
	DefaultConns     = wire.DefaultConns
	DefaultMaxBody   = wire.DefaultMaxBody
	DefaultMaxBodies = wire.DefaultMaxBodies
)

// name begins every error of this package.
const name = "openai"

// Config says whom to call and how. Its zero value calls OpenAI without a key.
type Config struct {
	// APIKey is sent as a bearer token; "" sends none, as for local servers.
	// Spaces and line ends around it, as files and shells leave them, are cut off.
	APIKey string
	// BaseURL includes the version (default DefaultBaseURL). One without any
	// path gets /v1. It may have no user, query or fragment.
	BaseURL string
	// Organization is sent as OpenAI-Organization if set.
	Organization string
	// Text makes the client read the words of a good answer into Reply.Text.
	Text bool

	// Stream makes Do take answers as streams, and StreamIdle bounds their silence, as in
	// wire.Config. Chat and Embed take answers in one piece.
	Stream     wire.StreamWhen
	StreamIdle time.Duration

	// HTTPClient, Transport, Conns, MaxBody, MaxBodies and HoldBodies are as in wire.Config.
	HTTPClient         *http.Client
	Transport          http.RoundTripper
	Conns              int
	MaxBody, MaxBodies int64
	HoldBodies         bool
}

// Client makes calls. Many goroutines may use it at once. It starts no goroutines but
// those of its connections.
type Client struct {
	api  *openai.Client
	wire *wire.Client
}

// New checks the configuration and returns a client. It makes no call. An error is
// of kind Misconfigured and does not contain the key.
func New(cfg Config) (*Client, error) {
	key, err := auth.Bearer(cfg.APIKey)
	if err == nil && strings.ContainsFunc(cfg.Organization, func(r rune) bool { return r < ' ' || r > '~' }) {
		err = &provider.Error{
			Kind: provider.Misconfigured, Err: errors.New("the organization has a character that headers cannot have"),
		}
	}
	if err != nil {
		return nil, err
	}
	w, err := wire.New(cfg.wire(key))
	if err != nil {
		return nil, err
	}
	api := openai.DefaultConfig(strings.TrimSpace(cfg.APIKey))
	api.BaseURL, api.OrgID, api.HTTPClient = w.Base(), cfg.Organization, doer{w}
	return &Client{api: openai.NewClientWithConfig(api), wire: w}, nil
}

func (cfg *Config) wire(key auth.Source) wire.Config {
	c := wire.Config{
		Dialect: Dialect{}, BaseURL: cfg.BaseURL, Auth: key, Text: cfg.Text,
		HTTPClient: cfg.HTTPClient, Transport: cfg.Transport, Conns: cfg.Conns,
		Stream: cfg.Stream, StreamIdle: cfg.StreamIdle, MaxBody: cfg.MaxBody, MaxBodies: cfg.MaxBodies, HoldBodies: cfg.HoldBodies,
	}
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	if cfg.Organization != "" {
		c.Header = http.Header{"Openai-Organization": {cfg.Organization}}
	}
	return c
}

// Do sends a request's body as it is and returns the answer's as it came; see wire.Client.
func (c *Client) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	return c.wire.Do(ctx, r)
}

// CloseIdle closes the connections that no call uses. A program that ends needs
// not do it; a test that looks for goroutines must.
func (c *Client) CloseIdle() { c.wire.CloseIdle() }

// String hides the key from %v.
func (c *Client) String() string { return c.wire.String() }

// GoString hides the key from %#v.
func (c *Client) GoString() string { return c.String() }
