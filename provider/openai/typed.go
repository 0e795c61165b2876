package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/wire"
)

// Chat completes a chat. go-openai itself refuses some requests before they are sent, with
// errors of kind Invalid. These are requests with Stream, or with parameters that its list of
// reasoning models does not allow, by the model's name. An answer that is cut at its length
// limit or filtered is a success; its FinishReason says so.
func (c *Client) Chat(ctx context.Context, r openai.ChatCompletionRequest) (openai.ChatCompletionResponse, error) {
	var resp openai.ChatCompletionResponse
	err := c.typed(ctx, &resp, func(ctx context.Context) error {
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
	err := c.typed(ctx, &resp, func(ctx context.Context) error {
		_, err := c.api.CreateEmbeddings(ctx, r)
		return err
	})
	if err != nil {
		return openai.EmbeddingResponse{}, err
	}
	return resp, nil
}

// typed lets go-openai make a request, sends it, and reads the answer into resp.
//
// go-openai would read the answer, too; but it stops reading at the first value,
// ignores the rest, and drops the headers of a failure.
func (c *Client) typed(ctx context.Context, resp openai.Response, call func(context.Context) error) error {
	p := pending{Context: ctx}
	defer p.exchange.Release()
	if err := call(&p); !errors.Is(err, errTaken) {
		return c.own(err)
	}
	x := &p.exchange
	resp.SetHeader(x.Header)
	if _, e := c.wire.Read(ctx, x); e != nil {
		return e
	}
	if shape := json.Unmarshal(x.Body, resp); shape != nil {
		// The answer is whole and is JSON, yet of another shape than OpenAI's:
		// another try would be paid for and give the same.
		return &provider.Error{
			Kind: provider.Invalid, Provider: name, Status: x.Status, Err: c.wire.Quiet(shape),
			RequestID: provider.RequestID(x.Header), Body: c.wire.Keep(x.Body),
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
