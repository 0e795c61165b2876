package openai

import (
	"context"
	"encoding/json"
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

// wire returns the configuration of the wire.Client underneath. It sets OpenAI's address as the
// default, as wire.Config has none.
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

// Chat completes a chat. go-openai itself refuses some requests before they are sent, with
// errors of kind Invalid. These are requests with Stream, or with parameters that its list of
// reasoning models does not allow, by the model's name. An answer that is cut at its length
// limit or filtered is a success; its FinishReason says so.
func (c *Client) Chat(ctx context.Context, r openai.ChatCompletionRequest) (openai.ChatCompletionResponse, error) {
	var resp openai.ChatCompletionResponse
	err := c.callTyped(ctx, &resp, func(ctx context.Context) error {
		_, err := c.api.CreateChatCompletion(ctx, r)
		return err
	})
	if err != nil {
		return openai.ChatCompletionResponse{}, err
	}
	return resp, nil
}

// Embed makes embeddings.
func (c *Client) Embed(ctx context.Context, r openai.EmbeddingRequest) (openai.EmbeddingResponse, error) {
	var resp openai.EmbeddingResponse
	err := c.callTyped(ctx, &resp, func(ctx context.Context) error {
		_, err := c.api.CreateEmbeddings(ctx, r)
		return err
	})
	if err != nil {
		return openai.EmbeddingResponse{}, err
	}
	return resp, nil
}

// callTyped lets go-openai make a request, sends it, and reads the answer into resp.
//
// go-openai would read the answer, too; but it stops reading at the first value,
// ignores the rest, and drops the headers of a failure.
func (c *Client) callTyped(ctx context.Context, resp openai.Response, call func(context.Context) error) error {
	p := pending{Context: ctx}
	defer p.exchange.Release()
	if err := call(&p); !errors.Is(err, errTaken) {
		return c.own(err)
	}
	exchange := &p.exchange
	resp.SetHeader(exchange.Header)
	if _, e := c.wire.Read(ctx, exchange); e != nil {
		return e
	}
	if shapeErr := json.Unmarshal(exchange.Body, resp); shapeErr != nil {
		// The answer is whole and is JSON, yet of another shape than OpenAI's:
		// another try would be paid for and give the same.
		return &provider.Error{
			Kind: provider.Invalid, Provider: name, Status: exchange.Status, Err: c.wire.Quiet(shapeErr),
			RequestID: provider.RequestID(exchange.Header), Body: c.wire.Keep(exchange.Body),
		}
	}
	return nil
}

// pending is the context of a call on its way through go-openai, with room for the call's
// exchange.
type pending struct {
	context.Context
	exchange wire.Exchange
}

type pendingKey struct{}

// Value returns the exchange, and asks the parent for all other keys.
func (p *pending) Value(key any) any {
	if key == (pendingKey{}) {
		return p
	}
	return p.Context.Value(key)
}

// own turns go-openai's refusal into an Error; nil stays nil.
func (c *Client) own(err error) error {
	if err == nil {
		return nil
	}
	return &provider.Error{Kind: provider.Invalid, Provider: name, Err: c.wire.Quiet(err)}
}

// doer is the HTTP client that go-openai is given. It makes the call, keeps the
// exchange for typed, and leaves nothing for go-openai to do.
type doer struct{ wire *wire.Client }

// errTaken tells go-openai that it is done.
var errTaken = errors.New("openai: the exchange is kept elsewhere")

func (d doer) Do(req *http.Request) (*http.Response, error) {
	p, ok := req.Context().Value(pendingKey{}).(*pending)
	if !ok {
		return nil, errors.New("openai: a call that does not come from here")
	}
	p.exchange = d.wire.Fetch(req)
	return nil, errTaken
}
