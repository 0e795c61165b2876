package paced

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	gopenai "github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/anthropic"
	"github.com/headrace/headrace/provider/sim/converse"
	"github.com/headrace/headrace/provider/sim/face"
	"github.com/headrace/headrace/provider/sim/gemini"
	"github.com/headrace/headrace/provider/sim/openai"
)

// A client of an SDK, with nothing but the transport set, gets chats and whole streams over a
// socket from a provider that refuses, fails and breaks connections.
func TestClientOfAnSDK(t *testing.T) {
	simulated := sim.New(sim.Config{
		RPM: 12000, Burst: 100 * time.Millisecond, Headers: true, RetryAfter: sim.Always, RetryAfterMS: true,
		Latency: sim.Latency{Median: 5 * time.Millisecond}, Errors: sim.Rates{Server500: 0.05, Reset: 0.05},
	}, clockwork.NewRealClock())
	server := httptest.NewServer(simulated)
	defer server.Close()
	base := http.DefaultTransport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	shared := shares(t, batch.WithLimits(batch.Limits{RPM: 12000}), batch.WithBackoff(time.Millisecond, 5*time.Millisecond))
	config := gopenai.DefaultConfig("a-key")
	config.BaseURL, config.HTTPClient = server.URL+"/v1", &http.Client{Transport: Transport(shared, base, patient)}
	client := gopenai.NewClientWithConfig(config)

	const calls = 60
	ends := make(chan error)
	for i := range calls {
		request := gopenai.ChatCompletionRequest{Model: "m-1", Messages: []gopenai.ChatCompletionMessage{{Role: "user", Content: "How deep is the water?"}}}
		want := sim.Answer("How deep is the water?")
		go func() {
			got, err := chatOf(client, request, i%2 == 0)
			if err == nil && got != want {
				err = errors.New("the answer is " + got + ", want " + want)
			}
			ends <- err
		}()
	}
	for range calls {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	if b := simulated.Books(); b.Accepted < calls {
		t.Errorf("%+v", b)
	}
	proves(t, shared, calls)
}

// chatOf returns the answer to a chat, asked in one piece or as a stream.
func chatOf(client *gopenai.Client, request gopenai.ChatCompletionRequest, whole bool) (string, error) {
	if whole {
		reply, err := client.CreateChatCompletion(context.Background(), request)
		if err != nil {
			return "", err
		}
		return reply.Choices[0].Message.Content, nil
	}
	stream, err := client.CreateChatCompletionStream(context.Background(), request)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var text strings.Builder
	for {
		piece, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return text.String(), nil
		case err != nil:
			return "", err
		case len(piece.Choices) > 0:
			text.WriteString(piece.Choices[0].Delta.Content)
		}
	}
}

// In every dialect a call has the lane of its model, and its answer comes.
func TestCallsOfEachDialect(t *testing.T) {
	for name, test := range map[string]struct {
		face       face.Face
		path, body string
		header     []string
	}{
		"openai":    {openai.Face{}, "/v1/chat/completions", chat, []string{"Authorization", "Bearer a-key"}},
		"anthropic": {anthropic.Face{}, "/v1/messages", chat, []string{"X-Api-Key", "a-key", "Anthropic-Version", "2023-06-01"}},
		"gemini":    {gemini.Face{}, "/v1beta/models/m-1:generateContent", `{"contents":[{"role":"user","parts":[{"text":"How deep?"}]}]}`, []string{"X-Goog-Api-Key", "a-key"}},
		"converse":  {converse.Face{}, "/model/m-1/converse", `{"messages":[{"role":"user","content":[{"text":"How deep?"}]}]}`, []string{"Authorization", "Bearer a-key"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := sim.New(sim.Config{Face: test.face, Headers: true}, clockwork.NewRealClock())
			shared := shares(t)
			var end batch.End
			client := &http.Client{Transport: Transport(shared, sim.NewTransport(server), batch.WithEnds(func(e batch.End) { end = e }))}
			req := post(t.Context(), "http://api.example", test.body)
			req.URL.Path = test.path
			for i := 0; i < len(test.header); i += 2 {
				req.Header.Set(test.header[i], test.header[i+1])
			}
			status, body, err := ask(client, req)
			if err != nil || status != http.StatusOK || end.Lane != "api.example/m-1" || end.Usage.OutputTokens == 0 {
				t.Errorf("%d %s %v, on %q, %+v", status, body, err, end.Lane, end.Usage)
			}
		})
	}
}
