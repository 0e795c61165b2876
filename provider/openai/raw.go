package openai

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider"
)

// Do sends a request's body as it is and returns the answer's as it came. It
// refuses, before anything is sent and with kind Invalid, an endpoint it does
// not know, an empty body and "stream":true: a line of results is one JSON
// value, and a stream that ends early would look like a shorter answer.
func (c *Client) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Provider: name, Err: err}
	}
	x := c.fetch(req)
	if e := c.verdict(ctx, x); e != nil {
		return provider.Reply{Status: e.Status, RequestID: e.RequestID, Body: e.Body}, e
	}
	reply := provider.Reply{Status: x.status, RequestID: provider.RequestID(x.header), Body: x.body}
	reply.Usage, reply.HasUsage, reply.Finish = note(ctx, x.body)
	return reply, nil
}

// request builds the HTTP request of a raw call.
func (c *Client) request(ctx context.Context, r provider.Request) (*http.Request, error) {
	url, err := c.url(r.Endpoint)
	if err != nil {
		return nil, err
	}
	if len(r.Body) == 0 {
		return nil, errors.New("the request has no body")
	}
	if gjson.GetBytes(r.Body, "stream").Type == gjson.True {
		return nil, errors.New(`"stream":true is not supported: a result is one JSON value; leave it out`)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.org != "" {
		req.Header.Set("OpenAI-Organization", c.org)
	}
	return req, nil
}

// note reads usage and finish reason off an answer and tells the attempt's
// Recorder.
func note(ctx context.Context, body []byte) (provider.Usage, bool, string) {
	usage, ok := provider.UsageOf(body)
	finish := provider.FinishOf(body)
	rec := provider.RecorderFrom(ctx)
	if ok {
		rec.Usage(usage)
	}
	if finish != "" {
		rec.Finish(finish)
	}
	return usage, ok, finish
}
