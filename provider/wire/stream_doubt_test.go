package wire_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/wire"
)

// A stream that has told what it used before it broke, fell silent or ended in an error is doubtful.
// One that is an error from its beginning on is a refusal.
func TestBrokenStreamsAreDoubtful(t *testing.T) {
	const (
		begins = "event: message_start\ndata: " + `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"c","usage":{"input_tokens":25,"output_tokens":1}}}` + "\n\n"
		fails  = "event: error\ndata: " + `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"
	)
	told := provider.Doubtful{Calls: 1, Usage: provider.Usage{InputTokens: 25, OutputTokens: 1}}
	for name, c := range map[string]struct {
		text   string
		silent bool
		want   provider.Doubtful
	}{
		"broken off":                     {begins, false, told},
		"silent":                         {begins, true, told},
		"an error in the middle":         {begins + fails, false, told},
		"an error from the beginning on": {fails, false, provider.Doubtful{}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, c.text)
			_ = http.NewResponseController(w).Flush()
			if c.silent {
				<-r.Context().Done()
			}
			panic(http.ErrAbortHandler)
		}))
		t.Cleanup(server.Close)
		client, err := wire.New(wire.Config{Dialect: anthropic.Dialect{}, BaseURL: server.URL, Stream: wire.StreamAlways, StreamIdle: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdle)
		ctx, rec := provider.WithRecorder(t.Context())
		_, err = client.Do(ctx, provider.Request{Endpoint: provider.Messages, Model: "c", Body: []byte(`{"model":"c","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`)})
		record := rec.Snapshot()
		if got := record.Doubtful(err); got != c.want {
			t.Errorf("%s: %+v, want %+v of %+v", name, got, c.want, err)
		}
	}
}
