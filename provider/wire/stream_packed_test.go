package wire_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/wire"
)

// A server that packs what it was asked not to pack is understood all the same, whether it streams
// or answers in one piece.
func TestPackedStreams(t *testing.T) {
	events, kind := eventsOf(t, "chat")
	const plain = `{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}`
	for name, c := range map[string]struct {
		kind, body string
		packed     bool
		fault      bool
	}{
		"a stream":               {kind, strings.Join(events, ""), true, false},
		"one piece":              {"application/json", plain, true, false},
		"a stream that is a lie": {kind, strings.Join(events, ""), false, true},
	} {
		base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", c.kind)
			w.Header().Set("Content-Encoding", "gzip")
			if !c.packed {
				_, _ = io.WriteString(w, c.body)
				return
			}
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, c.body)
			_ = z.Close()
		})
		cl := client(t, wire.Config{Dialect: openai.Dialect{}, BaseURL: base, Stream: wire.StreamAlways})
		reply, err := cl.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Body: []byte(`{"model":"m"}`)})
		cl.CloseIdle()
		if c.fault != errors.Is(err, provider.TransportFault) || !c.fault && (err != nil || !strings.Contains(string(reply.Body), `"finish_reason":"stop"`)) {
			t.Errorf("%s: %s, %v", name, reply.Body, err)
		}
	}
}
