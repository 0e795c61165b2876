package clients

import (
	"errors"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

const azureVersion = "2024-10-21" // of the API, the latest of the old form that is not a preview

// openAIs are the addresses under which OpenAI's dialect is spoken, each with whom it
// belongs to.
var openAIs = map[string]struct {
	sim  string
	with func(url string) []option.RequestOption
}{
	"openai": {"openai", func(url string) []option.RequestOption {
		return []option.RequestOption{option.WithBaseURL(url + "/v1"), option.WithAPIKey(apiKey)}
	}},
	"azure v1": {"azure", func(url string) []option.RequestOption {
		return []option.RequestOption{option.WithBaseURL(url + "/openai/v1"), option.WithAPIKey(apiKey)}
	}},
	"azure deployments": {"azure", func(url string) []option.RequestOption {
		return []option.RequestOption{azure.WithUnsafeAllowHTTP(), azure.WithEndpoint(url, azureVersion), azure.WithAPIKey(apiKey)}
	}},
}

// refusals are the codes for too many requests.
var refusals = map[string]string{"openai": "rate_limit_exceeded", "azure": "RateLimitReached"}

func openAI(t *testing.T, address, url string) openai.Client {
	t.Helper()
	return openai.NewClient(append(openAIs[address].with(url), option.WithHTTPClient(httpClient(t)), option.WithMaxRetries(0))...)
}

func TestOpenAI(t *testing.T) {
	for address, at := range openAIs {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			c := openAI(t, address, startSim(t, at.sim))
			got, err := c.Chat.Completions.New(t.Context(), openAIChat())
			if err != nil {
				t.Fatal(err)
			}
			says(t, got.Choices[0].Message.Content)
			if got.Choices[0].FinishReason != "stop" || got.Model != simModel || got.ID == "" || got.Created == 0 {
				t.Errorf("finish %q, model %q, id %q, created %d", got.Choices[0].FinishReason, got.Model, got.ID, got.Created)
			}
			if u := got.Usage; u.PromptTokens == 0 || u.CompletionTokens == 0 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

func TestOpenAIRefused(t *testing.T) {
	for address, at := range openAIs {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			c := openAI(t, address, startSim(t, at.sim, limited...))
			if _, err := c.Chat.Completions.New(t.Context(), openAIChat()); err != nil {
				t.Fatal(err)
			}
			_, err := c.Chat.Completions.New(t.Context(), openAIChat())
			e := openAIError(t, err, http.StatusTooManyRequests)
			if e.Code != refusals[at.sim] || e.Message == "" {
				t.Errorf("code %q, type %q, message %q", e.Code, e.Type, e.Message)
			}
			waits(t, e.Response.Header)
			if e.Response.Header.Get("X-Ratelimit-Limit-Requests") != "1" {
				t.Errorf("headers %v", e.Response.Header)
			}
		})
	}
}

func TestOpenAIOverloaded(t *testing.T) {
	t.Parallel()
	c := openAI(t, "openai", startSim(t, "openai", overloaded...))
	_, err := c.Chat.Completions.New(t.Context(), openAIChat())
	if e := openAIError(t, err, http.StatusServiceUnavailable); e.Message == "" || e.Type == "" {
		t.Errorf("type %q, message %q", e.Type, e.Message)
	}
}

func TestOpenAIResponses(t *testing.T) {
	t.Parallel()
	c := openAI(t, "openai", startSim(t, "openai"))
	got, err := c.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: simModel, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(question)},
	})
	if err != nil {
		t.Fatal(err)
	}
	says(t, got.OutputText())
	if got.Status != responses.ResponseStatusCompleted || got.Usage.InputTokens == 0 || got.Usage.OutputTokens == 0 {
		t.Errorf("status %q, usage %+v", got.Status, got.Usage)
	}
}

func TestOpenAIEmbeddings(t *testing.T) {
	t.Parallel()
	c := openAI(t, "openai", startSim(t, "openai"))
	got, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: simModel, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{question, "And above it?"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || len(got.Data[0].Embedding) == 0 || got.Data[1].Index != 1 || got.Usage.PromptTokens == 0 {
		t.Errorf("%+v", got)
	}
}

func TestOpenAIModerations(t *testing.T) {
	t.Parallel()
	c := openAI(t, "openai", startSim(t, "openai"))
	got, err := c.Moderations.New(t.Context(), openai.ModerationNewParams{
		Model: simModel, Input: openai.ModerationNewParamsInputUnion{OfString: openai.String(question)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != 1 || !got.Results[0].JSON.Flagged.Valid() || !got.Results[0].Categories.JSON.Violence.Valid() {
		t.Errorf("%s", got.RawJSON())
	}
}

func openAIChat() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:               simModel,
		MaxCompletionTokens: openai.Int(bound),
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("Be brief."), openai.UserMessage(question),
		},
	}
}

func openAIError(t *testing.T, err error, status int) *openai.Error {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("not its error: %v", err)
	}
	if e.StatusCode != status {
		t.Fatalf("status %d: %s", e.StatusCode, e.RawJSON())
	}
	return e
}
