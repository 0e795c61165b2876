package clients

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"google.golang.org/genai"
)

// Google's own client finds its vectors at both addresses: by batchEmbedContents at AI Studio,
// and by embedContent at Vertex, where it takes one text.
func TestGeminiEmbeds(t *testing.T) {
	for address, texts := range map[string][]*genai.Content{"AI Studio": append(genai.Text(question), genai.Text("And above it?")...), "Vertex": genai.Text(question)} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			size := int32(8)
			c := geminiAt(t, address, startSim(t, "gemini"))
			got, err := c.Models.EmbedContent(t.Context(), "gemini-embedding-2", texts, &genai.EmbedContentConfig{OutputDimensionality: &size})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Embeddings) != len(texts) || len(got.Embeddings[0].Values) == 0 {
				t.Errorf("%d embeddings of %d texts", len(got.Embeddings), len(texts))
			}
		})
	}
}

// AWS's own client asks Titan by InvokeModel.
func TestBedrockEmbeds(t *testing.T) {
	for way := range bedrocks {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			c := bedrockAt(t, way, startSim(t, "converse"))
			got, err := c.InvokeModel(t.Context(), &bedrockruntime.InvokeModelInput{
				ModelId: aws.String("amazon.titan-embed-text-v2:0"), ContentType: aws.String("application/json"), Body: []byte(`{"inputText":"What is in the river?","dimensions":256}`),
			})
			if err != nil {
				t.Fatal(err)
			}
			var vector struct {
				Embedding           []float64
				InputTextTokenCount int
			}
			if err := json.Unmarshal(got.Body, &vector); err != nil || len(vector.Embedding) == 0 || vector.InputTextTokenCount == 0 {
				t.Errorf("%s: %v", got.Body, err)
			}
		})
	}
}
