package batch

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/provider"
)

// A foreign client over provider.Transport reports no usage, and its answer has no method
// for it. The usage is in the results and in the sum, once.
func TestUsageOverTransport(t *testing.T) {
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"choices":[{"message":{"content":"Hi"},"finish_reason":"length"}],` +
				`"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}` + "\n")),
		}, nil
	})
	cfg := goopenai.DefaultConfig("sk-not-a-key")
	cfg.HTTPClient = &http.Client{Transport: &provider.Transport{Base: base}}
	api := goopenai.NewClientWithConfig(cfg)
	fn := func(ctx context.Context, _ int) (string, error) {
		answer, err := api.CreateChatCompletion(ctx, goopenai.ChatCompletionRequest{Model: "m"})
		if err != nil {
			return "", err
		}
		return answer.Choices[0].Message.Content, nil
	}
	results, sum, err := proved(t.Context(), t, numbers(3), fn)
	want := provider.Usage{InputTokens: 27, OutputTokens: 12}
	if err != nil || sum.Usage != want || results[0].Usage.InputTokens != 9 || results[0].Finish != "length" {
		t.Errorf("%v, %+v, %+v", err, sum.Usage, results)
	}
}
