package clients

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"
)

// geminis are the two addresses of the dialect.
var geminis = map[string]genai.ClientConfig{
	"AI Studio": {Backend: genai.BackendGeminiAPI, APIKey: apiKey},
	"Vertex":    {Backend: genai.BackendVertexAI, Project: "p", Location: "europe-west4"},
}

func TestGemini(t *testing.T) {
	for address := range geminis {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			got, err := askGemini(t, geminiAt(t, address, startSim(t, "gemini")))
			if err != nil {
				t.Fatal(err)
			}
			says(t, got.Text())
			if got.Candidates[0].FinishReason != genai.FinishReasonStop || got.ModelVersion != simModel || got.ResponseID == "" {
				t.Errorf("finish %q, model %q, id %q", got.Candidates[0].FinishReason, got.ModelVersion, got.ResponseID)
			}
			u := got.UsageMetadata
			if u == nil || u.PromptTokenCount == 0 || u.CandidatesTokenCount == 0 || u.TotalTokenCount != u.PromptTokenCount+u.CandidatesTokenCount+u.ThoughtsTokenCount {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

func TestGeminiRefused(t *testing.T) {
	for address := range geminis {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			c := geminiAt(t, address, startSim(t, "gemini", limited...))
			if _, err := askGemini(t, c); err != nil {
				t.Fatal(err)
			}
			_, err := askGemini(t, c)
			e := geminiError(t, err, http.StatusTooManyRequests)
			if e.Status != "RESOURCE_EXHAUSTED" || e.Message == "" {
				t.Errorf("status %q, message %q", e.Status, e.Message)
			}
			if address == "AI Studio" && detail(e, "google.rpc.RetryInfo")["retryDelay"] == nil { // Vertex does not tell
				t.Errorf("details %v", e.Details)
			}
		})
	}
}

func TestGeminiOverloaded(t *testing.T) {
	t.Parallel()
	_, err := askGemini(t, geminiAt(t, "AI Studio", startSim(t, "gemini", overloaded...)))
	if e := geminiError(t, err, http.StatusServiceUnavailable); e.Status != "UNAVAILABLE" {
		t.Errorf("status %q, message %q", e.Status, e.Message)
	}
}

func geminiAt(t *testing.T, address, url string) *genai.Client {
	t.Helper()
	cfg := geminis[address]
	cfg.HTTPClient = httpClient(t)
	cfg.HTTPOptions.BaseURL = url
	if cfg.Backend == genai.BackendVertexAI { // its own way to a token asks Google for one
		cfg.HTTPOptions.Headers = http.Header{"Authorization": {"Bearer " + apiKey}}
	}
	c, err := genai.NewClient(t.Context(), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func askGemini(t *testing.T, c *genai.Client) (*genai.GenerateContentResponse, error) {
	t.Helper()
	return c.Models.GenerateContent(t.Context(), simModel, genai.Text(question), &genai.GenerateContentConfig{
		MaxOutputTokens: bound, SystemInstruction: genai.NewContentFromText("Be brief.", genai.RoleUser),
	})
}

func geminiError(t *testing.T, err error, status int) genai.APIError {
	t.Helper()
	var e genai.APIError
	if !errors.As(err, &e) {
		t.Fatalf("not its error: %v", err)
	}
	if e.Code != status {
		t.Fatalf("status %d: %+v", e.Code, e)
	}
	return e
}

// detail is the first of a type among an error's details.
func detail(e genai.APIError, name string) map[string]any {
	for _, d := range e.Details {
		if at, _ := d["@type"].(string); strings.HasSuffix(at, name) {
			return d
		}
	}
	return nil
}
