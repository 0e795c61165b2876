package serve

import (
	"bytes"
	"context"
	"io"
	"net/http"

	hiding "github.com/headrace/headrace/batch/serve/internal/stream"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// Bounds of what is known of servers that refuse the question for the usage of a stream.
const (
	maxWithoutUsage = 1000     // lanes: a client chooses its models, and so may choose their names
	mostReason      = 64 << 10 // bytes of a refusal that are looked at
)

// bodyToSend returns the body that goes out, and whether it asks for a usage that the client has not asked for.
// Only streams of OpenAI's chats and completions come without one.
func (v *visit) bodyToSend() (body []byte, hides bool) {
	if !v.server.cfg.InjectUsage || !v.streams || v.operation != provider.Chat && v.operation != provider.Completions {
		return v.body, false
	}
	if v.bodyWithUsage == nil {
		if rawjson.Lookup(rawjson.Lookup(v.body, "stream_options"), "include_usage") != nil {
			return v.body, false // the client has said what it wants
		}
		grown := int64(len(v.body)) + 64 // what is added
		if !v.server.takeRoom(grown) {
			return v.body, false
		}
		v.bodyRoom += grown
		v.bodyWithUsage = stream.Ask(v.body, true)
	}
	v.server.withBooks(func(b *books) { hides = !b.withoutUsage[v.lane] })
	if !hides {
		return v.body, false
	}
	return v.bodyWithUsage, true
}

// sendAskingUsage sends the call, and asks for the usage of a stream. A server that refuses that question is asked
// without it, now and from then on.
func (v *visit) sendAskingUsage(ctx context.Context, up Upstream) (*http.Response, error) {
	body, hides := v.bodyToSend()
	request := provider.Request{Endpoint: v.operation, Model: v.model, Body: body, Lane: v.lane}
	resp, err := up.Pass(ctx, request, v.pathStreams, v.header, v.query)
	if err != nil || !hides {
		return resp, err
	}
	if !refusesCounting(resp) {
		v.out.hider = new(hiding.Hider) // no ping looks at it, and one that the client does not take has the turn
		return resp, nil
	}
	_ = resp.Body.Close() // its reason was read
	v.server.withBooks(func(b *books) {
		if len(b.withoutUsage) < maxWithoutUsage {
			b.withoutUsage[v.lane] = true
		}
	})
	request.Body = v.body
	return up.Pass(ctx, request, v.pathStreams, v.header, v.query)
}

// refusesCounting reports whether a server refuses a call because of the question for the usage. What it reads of
// the body can still be read.
func refusesCounting(resp *http.Response) bool {
	if resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnprocessableEntity {
		return false
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, mostReason)) // its fault comes again with the rest
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	return bytes.Contains(head, []byte("stream_options")) || bytes.Contains(head, []byte("include_usage"))
}
