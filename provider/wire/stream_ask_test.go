package wire_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/cohere"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/wire"
)

// sink refuses every call and keeps what was asked.
type sink struct {
	url, body string
	header    http.Header
}

func (s *sink) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	s.url, s.body, s.header = req.URL.String(), string(body), req.Header
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader(`{}`))}, err
}

// Each dialect asks for a stream in its own way; an operation without one is sent as ever. Nothing
// else in the body changes.
func TestHowStreamsAreAskedFor(t *testing.T) {
	const chat = `{"model":"m", "a": 1.0}`
	for _, c := range []struct {
		dialect          provider.Dialect
		operation, given string
		url, body        string
	}{
		{openai.Dialect{}, provider.Chat, chat, "/v1/chat/completions", `{"stream":true,"model":"m","a": 1.0,"stream_options":{"include_usage":true}}`},
		{openai.Dialect{}, provider.Chat, `{ "stream" : false , "stream_options":{"x":[1], "include_usage":false},"s":"\u00fc"}`, "/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true,"x":[1]},"s":"\u00fc"}`},
		{openai.Dialect{}, provider.Chat, `{"stream_options":null}`, "/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true}}`},
		{openai.Dialect{}, provider.Completions, `{}`, "/v1/completions", `{"stream":true,"stream_options":{"include_usage":true}}`},
		{openai.Dialect{}, provider.Responses, chat, "/v1/responses", `{"stream":true,"model":"m","a": 1.0}`},
		{openai.Dialect{}, provider.Messages, chat, "/v1/messages", `{"stream":true,"model":"m","a": 1.0}`},
		{openai.Dialect{}, provider.Embeddings, chat, "/v1/embeddings", chat},
		{openai.Dialect{}, provider.Moderations, chat, "/v1/moderations", chat},
		{openai.Dialect{}, provider.Rerank, chat, "/v1/rerank", chat},
		{anthropic.Dialect{}, provider.Messages, chat, "/v1/messages", `{"stream":true,"model":"m","a": 1.0}`},
		{gemini.Dialect{}, provider.GenerateContent, chat, "/v1beta/models/a%2Fb:streamGenerateContent?alt=sse", chat},
		{gemini.Dialect{}, provider.EmbedContent, chat, "/v1beta/models/a%2Fb:embedContent", chat},
		{converse.Dialect{}, provider.Converse, chat, "/model/a%2Fb/converse-stream", chat},
		{converse.Dialect{}, provider.Invoke, chat, "/model/a%2Fb/invoke", chat},
		{cohere.Dialect{}, provider.Rerank, chat, "/v2/rerank", chat},
	} {
		s := new(sink)
		_, err := client(t, wire.Config{Dialect: c.dialect, BaseURL: "http://127.0.0.1:1", Transport: s, Stream: wire.StreamAlways}).
			Do(t.Context(), provider.Request{Endpoint: c.operation, Model: "a/b", Body: []byte(c.given)})
		if url := "http://127.0.0.1:1" + c.url; err == nil || s.url != url || s.body != c.body {
			t.Errorf("%s of %s: %s of %s: %v", c.operation, c.dialect.Name(), s.body, s.url, err)
		}
		asks := c.given != s.body || strings.Contains(s.url, "stream")
		if accepts := strings.Contains(s.header.Get("Accept"), "event"); accepts != asks {
			t.Errorf("%s: %v", c.operation, s.header)
		}
	}
}

// Claude on Vertex has another address for streams, and a version in place of its model.
func TestStreamPathOfAVendor(t *testing.T) {
	s := new(sink)
	c := must.Get(catalog.Client("vertex-anthropic", catalog.Place{Project: "p", Location: "europe-west4"}, "", func(cfg *wire.Config) {
		cfg.Transport, cfg.Stream = s, wire.StreamAuto
	}))(t)
	for most, method := range map[string]string{"21333": ":rawPredict", "21334": ":streamRawPredict"} {
		_, _ = c.Do(t.Context(), provider.Request{Endpoint: provider.Messages, Model: "m", Body: []byte(`{"model":"m","max_tokens":` + most + `}`)})
		if !strings.HasSuffix(s.url, "/models/m"+method) || strings.Contains(s.body, `"stream":true`) != (most == "21334") || !strings.Contains(s.body, `"anthropic_version"`) {
			t.Errorf("%s: %s of %s", most, s.body, s.url)
		}
	}
}

// A server that answers in one piece, or refuses, is read as ever, and a server that does not
// know how to tell a stream's usage is asked once more without, and remembered.
func TestAnswersThatAreNoStreams(t *testing.T) {
	whole := string(read(t, "chat.json"))
	events, _ := recording(t, "chat")
	var bodies []string
	answer := func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusTeapot) }
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		answer(w, string(body))
	})
	c := client(t, wire.Config{Dialect: openai.Dialect{}, BaseURL: base, Stream: wire.StreamAlways})
	do := func() (provider.Reply, error) {
		bodies = nil
		return c.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Body: []byte(`{}`)})
	}
	answer = func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
	}
	if reply, err := do(); err != nil || string(reply.Body) != whole || len(bodies) != 1 {
		t.Errorf("in one piece: %v, %d calls", err, len(bodies))
	}
	answer = func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`)
	}
	var e *provider.Error
	if _, err := do(); !errors.As(err, &e) || e.Kind != provider.Throttled || e.RetryAfter.Seconds() != 7 || len(bodies) != 1 {
		t.Errorf("refused: %v, %d calls", err, len(bodies))
	}
	answer = func(w http.ResponseWriter, _ string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"model is missing"}}`)
	}
	if _, err := do(); !errors.Is(err, provider.Invalid) || len(bodies) != 1 {
		t.Errorf("another fault: %v, %d calls", err, len(bodies))
	}
	answer = func(w http.ResponseWriter, body string) {
		var asked map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &asked); err != nil || asked["stream_options"] != nil {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(events)
	}
	for want := 2; want > 0; want-- {
		if _, err := do(); err != nil || len(bodies) != want {
			t.Errorf("unknown options: %v, %d calls, want %d", err, len(bodies), want)
		}
	}
}

// The client of OpenAI takes streams, too.
func TestOpenAIClientStreams(t *testing.T) {
	events, kind := recording(t, "chat")
	asked := ""
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = string(body)
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(events)
	})
	c := must.Get(openai.New(openai.Config{BaseURL: base, Stream: wire.StreamAlways}))(t)
	t.Cleanup(c.CloseIdle)
	reply, err := c.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Body: []byte(`{}`)})
	if err != nil || !strings.Contains(asked, `"stream":true`) || !strings.Contains(string(reply.Body), `"chat.completion"`) {
		t.Errorf("%v: asked %s, answered %s", err, asked, reply.Body)
	}
}

// Whatever comes as a stream, no assembler panics, and what it calls an answer is JSON.
func FuzzStreams(f *testing.F) {
	for i, one := range recorded {
		events, _ := recording(f, one.name)
		f.Add(uint8(i), events)
	}
	f.Fuzz(func(t *testing.T, which uint8, events []byte) {
		one := recorded[int(which)%len(recorded)]
		body, err := together(one.dialect, one.operation, events)
		if err == nil && !json.Valid(body) {
			t.Errorf("%s of %s: %q", one.operation, one.dialect.Name(), body)
		}
		if again, failed := together(one.dialect, one.operation, events, 1); (failed == nil) != (err == nil) || string(again) != string(body) {
			t.Errorf("byte by byte it is %q, %v; at once it is %q, %v", again, failed, body, err)
		}
	})
}
