package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/provider"
)

// Chat completes a chat. Some requests go-openai itself refuses before they are
// sent (Stream, and parameters that its list of reasoning models does not
// allow, by the model's name): they are of kind Invalid. An answer that is cut
// at its length limit or filtered is a success; its FinishReason tells.
func (c *Client) Chat(ctx context.Context, r openai.ChatCompletionRequest) (openai.ChatCompletionResponse, error) {
	var resp openai.ChatCompletionResponse
	err := c.typed(ctx, func(ctx context.Context) (err error) {
		resp, err = c.api.CreateChatCompletion(ctx, r)
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
	err := c.typed(ctx, func(ctx context.Context) (err error) {
		resp, err = c.api.CreateEmbeddings(ctx, r)
		return err
	})
	if err != nil {
		return openai.EmbeddingResponse{}, err
	}
	return resp, nil
}

type exchangeKey struct{}

// typed runs a call of go-openai's and judges it by what went over the wire.
func (c *Client) typed(ctx context.Context, call func(context.Context) error) error {
	var x exchange
	err := call(context.WithValue(ctx, exchangeKey{}, &x))
	if x.status == 0 && x.err == nil { // go-openai refused it before the wire
		return c.own(err)
	}
	reply, e := c.answer(ctx, x)
	if e != nil {
		return e
	}
	note(ctx, &reply)
	if err != nil {
		// The answer is whole and is JSON, yet of another shape than OpenAI's:
		// another try would be paid for and be of the same.
		return &provider.Error{
			Kind: provider.Invalid, Provider: name, Status: x.status, Err: c.quiet(err),
			RequestID: provider.RequestID(x.header), Body: c.keep(x.body),
		}
	}
	return nil
}

// own makes an Error of go-openai's refusal; nil stays nil.
func (c *Client) own(err error) error {
	if err == nil {
		return nil
	}
	return &provider.Error{Kind: provider.Invalid, Provider: name, Err: c.quiet(err)}
}

// doer is the HTTP client that go-openai is given. It keeps the exchange for
// typed, and hands go-openai a body that is already read: bounded and whole.
type doer struct{ c *Client }

func (d doer) Do(req *http.Request) (*http.Response, error) {
	x := d.c.fetch(req)
	if keep, ok := req.Context().Value(exchangeKey{}).(*exchange); ok {
		*keep = x
	}
	if x.err != nil {
		return nil, x.err
	}
	return &http.Response{
		StatusCode: x.status, Status: http.StatusText(x.status), Header: x.header, Request: req,
		Body: io.NopCloser(bytes.NewReader(x.body)), ContentLength: int64(len(x.body)),
	}, nil
}
