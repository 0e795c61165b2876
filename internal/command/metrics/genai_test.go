package metrics

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// Calls are counted in the conventions' words.
func TestGenAISpeaksTheConventionsWords(t *testing.T) {
	g := NewGenAI()
	g.Note(&Call{Endpoint: provider.Chat, Vendor: "mistral", Model: "m", Server: "api.mistral.ai", Took: 20 * time.Millisecond, Usage: provider.Usage{InputTokens: 16, OutputTokens: 3}})
	g.Note(&Call{Endpoint: provider.GenerateContent, Vendor: "vertex-express", Model: "g", Server: "h", Err: &provider.Error{Kind: provider.Throttled, Status: 429}, Took: time.Second})
	g.Note(&Call{Endpoint: provider.Embeddings, Vendor: "bedrock-openai", Model: "e", Server: "h", Took: time.Second})
	want := `
# HELP gen_ai_client_operation_duration_seconds Duration of a call, by OpenTelemetry's conventions for generative AI.
# TYPE gen_ai_client_operation_duration_seconds histogram
`
	for _, labels := range []string{
		`error_type="",gen_ai_operation_name="chat",gen_ai_provider_name="mistral_ai",gen_ai_request_model="m",server_address="api.mistral.ai"`,
		`error_type="",gen_ai_operation_name="embeddings",gen_ai_provider_name="aws.bedrock",gen_ai_request_model="e",server_address="h"`,
		`error_type="throttled",gen_ai_operation_name="generate_content",gen_ai_provider_name="gcp.vertex_ai",gen_ai_request_model="g",server_address="h"`,
	} {
		took := 1.0
		if strings.Contains(labels, "mistral") {
			took = 0.02
		}
		for end := 0.01; end < 100; end *= 2 {
			n := 0
			if took <= end {
				n = 1
			}
			want += fmt.Sprintf("gen_ai_client_operation_duration_seconds_bucket{%s,le=\"%v\"} %d\n", labels, end, n)
		}
		want += fmt.Sprintf("gen_ai_client_operation_duration_seconds_bucket{%s,le=\"+Inf\"} 1\n", labels)
		want += fmt.Sprintf("gen_ai_client_operation_duration_seconds_sum{%s} %v\ngen_ai_client_operation_duration_seconds_count{%s} 1\n", labels, took, labels)
	}
	text := textOf(g)
	if got, _, _ := strings.Cut(text, "# HELP "+genAITokens); got != want[1:] {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
	if n := strings.Count(text, "\n"+genAITokens+"_count{"); n != 2 {
		t.Errorf("%d series of tokens, want those of the one call that told its usage", n)
	}
}

// Models beyond the first share a label, however many there are.
func TestGenAIModelsAreBounded(t *testing.T) {
	g := NewGenAI()
	for i := range 10 * observe.MaxLanes {
		g.Note(&Call{Endpoint: provider.Chat, Vendor: "openai", Model: fmt.Sprint("m", i)})
	}
	if n := seriesOf(g); n != observe.MaxLanes+1 {
		t.Errorf("%d series", n)
	}
}

func TestThePageListsTheConventionsMetrics(t *testing.T) {
	page, err := os.ReadFile("../../../docs/metrics.md")
	for _, name := range []string{genAIDuration, genAITokens} {
		if err != nil || !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/metrics.md has no row of %s: %v", name, err)
		}
	}
}
