package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// Do sends a request's body as it is and returns the answer's as it came. It
// refuses, before anything is sent and with kind Invalid, an endpoint it does
// not know, an empty body, "stream":true and "background":true: a line of results
// is one JSON value, a stream that ends early would look like a shorter answer,
// and what goes on in the background is no answer yet.
func (c *Client) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Provider: name, Err: err}
	}
	x := c.fetch(req)
	reply, e := c.answer(ctx, x)
	if e != nil || !c.hold {
		x.long.giveBack()
	}
	note(ctx, &reply)
	if e != nil {
		return provider.Reply{Status: e.Status, RequestID: e.RequestID, Body: e.Body}, e
	}
	if c.hold && x.long != nil {
		reply.Done = x.long.giveBack
	}
	return reply, nil
}

// request builds the HTTP request of a raw call.
func (c *Client) request(ctx context.Context, r provider.Request) (*http.Request, error) {
	blank, err := c.blank(r.Endpoint)
	if err != nil {
		return nil, err
	}
	if len(r.Body) == 0 {
		return nil, errors.New("the request has no body")
	}
	if word := notAtOnce(r.Body); word != "" {
		return nil, fmt.Errorf("%q:true is not supported: a result is one JSON value, and whole; leave it out", word)
	}
	req := blank.WithContext(ctx)
	if c.foreign {
		req = blank.Clone(ctx)
	}
	reader := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
	req.Body, _ = reader()
	req.GetBody, req.ContentLength = reader, int64(len(r.Body)) // for a connection that was closed as it was used
	return req, nil
}

// notAtOnce names what in a body asks for anything but the whole answer in one value: a
// stream, or a task that goes on in the background and is answered with its id.
func notAtOnce(body []byte) string {
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		switch string(w.Name) {
		case "stream", "background":
			if string(w.Skip()) == "true" {
				return string(w.Name)
			}
		default:
			w.Skip()
		}
	}
	return ""
}

// blanks are requests without bodies, by path without the version: what is the same
// for every call is made once. Nobody between here and the wire changes a request's
// URL or headers; a transport that is not ours gets its own all the same.
func blanks(base string, h http.Header) (map[string]*http.Request, error) {
	all := map[string]*http.Request{}
	for _, path := range paths {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, base+path, http.NoBody)
		if err != nil {
			return nil, errors.New("base URL: it does not parse as a URL")
		}
		req.Header = h
		all[path] = req
	}
	return all, nil
}

// headers are those that every raw call has.
func headers(key, org string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	if org != "" {
		h.Set("OpenAI-Organization", org)
	}
	return h
}

// note tells the attempt's Recorder what an answer says of itself: one that is an error all
// the same may say what it has used.
func note(ctx context.Context, r *provider.Reply) {
	rec := provider.RecorderFrom(ctx)
	if r.HasUsage {
		rec.Usage(r.Usage)
	}
	if r.Finish != "" {
		rec.Finish(r.Finish)
	}
}
