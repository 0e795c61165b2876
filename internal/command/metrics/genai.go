package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// The metrics that OpenTelemetry's conventions for generative AI give to clients, in the names
// that Prometheus has for them. They follow the conventions' version 1.37, where their status
// is Development: other than ours, they may change with a later version.
const (
	genAIDuration = "gen_ai_client_operation_duration_seconds"
	genAITokens   = "gen_ai_client_token_usage"
)

// A Call is one call, in the words of the conventions.
type Call struct {
	Endpoint string // as in provider.Request
	Vendor   string // the name of its row in the catalog
	Model    string
	Server   string // host
	Err      error  // nil: it was answered
	Took     time.Duration
	Usage    provider.Usage
}

// GenAI counts calls for the conventions' metrics. Any goroutine may use it.
type GenAI struct {
	duration, tokens *prometheus.HistogramVec

	mu     sync.Mutex
	models map[string]bool // that have a name here
}

// NewGenAI returns counters that have counted nothing.
func NewGenAI() *GenAI {
	labels := []string{"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address"}
	return &GenAI{
		models: map[string]bool{},
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: genAIDuration, Help: "Duration of a call, by OpenTelemetry's conventions for generative AI.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 14),
		}, append(labels, "error_type")),
		tokens: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: genAITokens, Help: "Tokens of an answered call, by OpenTelemetry's conventions for generative AI.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 14),
		}, append(labels, "gen_ai_token_type")),
	}
}

// Describe names the metrics.
func (g *GenAI) Describe(to chan<- *prometheus.Desc) {
	g.duration.Describe(to)
	g.tokens.Describe(to)
}

// Collect sends what was counted.
func (g *GenAI) Collect(to chan<- prometheus.Metric) {
	g.duration.Collect(to)
	g.tokens.Collect(to)
}

// Note counts a call.
func (g *GenAI) Note(c *Call) {
	kind := ""
	if c.Err != nil {
		kind = provider.ClassifyErr(c.Err).Kind.String()
	}
	labels := mended([]string{operationOf(c.Endpoint), providerOf(c.Vendor), g.modelOf(c.Model), c.Server})
	g.duration.WithLabelValues(append(labels, kind)...).Observe(c.Took.Seconds())
	if c.Err == nil && c.Usage != (provider.Usage{}) {
		g.tokens.WithLabelValues(append(labels, "input")...).Observe(float64(c.Usage.InputTokens))
		g.tokens.WithLabelValues(append(labels, "output")...).Observe(float64(c.Usage.OutputTokens))
	}
}

// modelOf returns the label of a model. As with lanes, the first ones have a name.
func (g *GenAI) modelOf(model string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.models[model]:
	case len(g.models) >= observe.MaxLanes:
		return observe.OtherLanes
	default:
		g.models[strings.Clone(model)] = true // it may be a piece of a line
	}
	return model
}

// operationOf returns the conventions' word for an operation, or the operation's own name.
func operationOf(endpoint string) string {
	switch endpoint {
	case provider.Chat, provider.Responses, provider.Messages, provider.Converse:
		return "chat"
	case provider.GenerateContent:
		return "generate_content"
	case provider.Completions:
		return "text_completion"
	case provider.Embeddings, provider.EmbedContent:
		return "embeddings"
	}
	return endpoint[strings.LastIndexAny(endpoint, "/:")+1:]
}

// providers holds the conventions' words for vendors, by the beginning of a name in the catalog.
var providers = []struct{ vendor, word string }{
	{"google-openai", "gcp.gemini"},
	{"gemini", "gcp.gemini"},
	{"vertex", "gcp.vertex_ai"},
	{"azure-ai", "azure.ai.inference"},
	{"azure", "azure.ai.openai"},
	{"bedrock", "aws.bedrock"},
	{"mistral", "mistral_ai"},
	{"xai", "x_ai"},
	{"cohere", "cohere"},
}

// providerOf returns the conventions' word for a vendor, or the vendor's own name.
func providerOf(vendor string) string {
	for _, p := range providers {
		if strings.HasPrefix(vendor, p.vendor) {
			return p.word
		}
	}
	return vendor
}
