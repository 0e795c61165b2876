package openai_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
)

// roundTripper answers in process.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An answer of Chat holds no room once it is read, be it of OpenAI's shape or not: with
// room for one long answer, the next would wait for ever.
func TestChatHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("a", 1<<20)
		shape := `{"choices":[{"finish_reason":"stop","message":{"content":"` + long + `"}}]}`
		c, err := openai.New(openai.Config{
			HoldBodies: true, MaxBodies: 1,
			Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{}, Request: r, ContentLength: -1,
					Body: io.NopCloser(strings.NewReader(shape)),
				}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := c.Chat(t.Context(), goopenai.ChatCompletionRequest{Model: "m"}); err != nil {
				t.Error(err)
			}
		}
		shape = `{"created":"soon","choices":[{"finish_reason":"stop","message":{"content":"` + long + `"}}]}`
		for range 3 {
			var odd *provider.Error
			_, err := c.Chat(t.Context(), goopenai.ChatCompletionRequest{Model: "m"})
			if !errors.As(err, &odd) || len(odd.Body) > provider.MaxErrorBody {
				t.Errorf("%v: %d bytes are held", err, cap(odd.Body))
			}
		}
	})
}
