package clients

import (
	"errors"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// overloadedStatus is Anthropic's own, and in no list of net/http's.
const overloadedStatus = 529

func TestAnthropic(t *testing.T) {
	t.Parallel()
	got, err := askAnthropic(t, anthropicAt(t, startSim(t, "anthropic")))
	if err != nil {
		t.Fatal(err)
	}
	says(t, got.Content[0].Text)
	if got.StopReason != anthropic.StopReasonEndTurn || got.Model != simModel || got.ID == "" || got.Role != "assistant" || got.Type != "message" {
		t.Errorf("stop %q, model %q, id %q, role %q, type %q", got.StopReason, got.Model, got.ID, got.Role, got.Type)
	}
	u := got.Usage
	if u.InputTokens == 0 || u.OutputTokens == 0 || !u.JSON.CacheReadInputTokens.Valid() || !u.JSON.CacheCreationInputTokens.Valid() {
		t.Errorf("usage %s", u.RawJSON())
	}
}

func TestAnthropicRefused(t *testing.T) {
	t.Parallel()
	c := anthropicAt(t, startSim(t, "anthropic", limited...))
	if _, err := askAnthropic(t, c); err != nil {
		t.Fatal(err)
	}
	_, err := askAnthropic(t, c)
	e := anthropicError(t, err, http.StatusTooManyRequests)
	if e.Type() != anthropic.ErrorTypeRateLimitError {
		t.Errorf("type %q: %s", e.Type(), e.RawJSON())
	}
	waits(t, e.Response.Header)
	if e.Response.Header.Get("Anthropic-Ratelimit-Requests-Limit") != "1" {
		t.Errorf("headers %v", e.Response.Header)
	}
}

func TestAnthropicOverloaded(t *testing.T) {
	t.Parallel()
	_, err := askAnthropic(t, anthropicAt(t, startSim(t, "anthropic", overloaded...)))
	if e := anthropicError(t, err, overloadedStatus); e.Type() != anthropic.ErrorTypeOverloadedError {
		t.Errorf("type %q: %s", e.Type(), e.RawJSON())
	}
}

// Without a bound on the answer there is none: Anthropic demands it.
func TestAnthropicUnbounded(t *testing.T) {
	t.Parallel()
	c := anthropicAt(t, startSim(t, "anthropic"))
	_, err := c.Messages.New(t.Context(), anthropic.MessageNewParams{Model: simModel, Messages: anthropicTurns()},
		option.WithJSONDel("max_tokens"))
	if e := anthropicError(t, err, http.StatusBadRequest); e.Type() != anthropic.ErrorTypeInvalidRequestError {
		t.Errorf("type %q: %s", e.Type(), e.RawJSON())
	}
}

func anthropicAt(t *testing.T, url string) anthropic.Client {
	t.Helper()
	return anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey(apiKey),
		option.WithHTTPClient(httpClient(t)), option.WithMaxRetries(0))
}

func askAnthropic(t *testing.T, c anthropic.Client) (*anthropic.Message, error) {
	t.Helper()
	return c.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: simModel, MaxTokens: bound, Messages: anthropicTurns(), System: []anthropic.TextBlockParam{{Text: "Be brief."}},
	})
}

func anthropicTurns() []anthropic.MessageParam {
	return []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))}
}

func anthropicError(t *testing.T, err error, status int) *anthropic.Error {
	t.Helper()
	var e *anthropic.Error
	if !errors.As(err, &e) {
		t.Fatalf("not its error: %v", err)
	}
	if e.StatusCode != status {
		t.Fatalf("status %d: %s", e.StatusCode, e.RawJSON())
	}
	if e.RequestID == "" {
		t.Errorf("no request id: %v", e.Response.Header)
	}
	return e
}
