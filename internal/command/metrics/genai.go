package metrics

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headrace/headrace/internal/command/metrics/exposition"
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

// The labels that both metrics have.
var genAILabels = []string{"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address"}

var (
	durations = &family{
		Name: genAIDuration, Help: "Duration of a call, by OpenTelemetry's conventions for generative AI.",
		Kind: exposition.Histogram, Labels: append(slices.Clone(genAILabels), "error_type"),
	}
	tokenUsage = &family{
		Name: genAITokens, Help: "Tokens of an answered call, by OpenTelemetry's conventions for generative AI.",
		Kind: exposition.Histogram, Labels: append(slices.Clone(genAILabels), "gen_ai_token_type"),
	}
)

// The buckets: 10 ms to 82 s, and 1 token to 67 million.
var (
	secondEnds = bucketEnds(0.01, 2)
	tokenEnds  = bucketEnds(1, 4)
)

// bucketEnds returns the ends of 14 buckets, each factor times the one before.
func bucketEnds(first, factor float64) []float64 {
	all := make([]float64, 14)
	for k := range all {
		all[k] = first
		first *= factor
	}
	return all
}

// A calling names one series: the values of the labels. The last is the kind of failure, or of the tokens.
type seriesLabels [5]string

// GenAI counts calls for the conventions' metrics. Any goroutine may use it.
type GenAI struct {
	mu                sync.Mutex
	models            map[string]bool // that have a name here
	durations, tokens map[seriesLabels]*exposition.Spread
}

// NewGenAI returns counters that have counted nothing.
func NewGenAI() *GenAI {
	return &GenAI{models: map[string]bool{}, durations: map[seriesLabels]*exposition.Spread{}, tokens: map[seriesLabels]*exposition.Spread{}}
}

// Collect shows what was counted.
func (g *GenAI) Collect(to *exposition.Page) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for f, all := range map[*family]map[seriesLabels]*exposition.Spread{durations: g.durations, tokenUsage: g.tokens} {
		for of, s := range all {
			now := *s
			now.Counts = slices.Clone(s.Counts) // the page is written later
			to.AddSpread(f, &now, of[:]...)
		}
	}
}

// Note counts a call.
func (g *GenAI) Note(c *Call) {
	kind := ""
	if c.Err != nil {
		kind = provider.ClassifyErr(c.Err).Kind.String()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	of := seriesLabels{operationOf(c.Endpoint), providerOf(c.Vendor), g.modelOf(c.Model), validUTF8(c.Server), kind}
	countValue(g.durations, of, secondEnds, c.Took.Seconds())
	if c.Err == nil && c.Usage != (provider.Usage{}) {
		of[4] = "input"
		countValue(g.tokens, of, tokenEnds, float64(c.Usage.InputTokens))
		of[4] = "output"
		countValue(g.tokens, of, tokenEnds, float64(c.Usage.OutputTokens))
	}
}

// countValue adds a value to the series with these labels, and begins that series if it is new.
func countValue(all map[seriesLabels]*exposition.Spread, of seriesLabels, ends []float64, v float64) {
	s := all[of]
	if s == nil {
		s = &exposition.Spread{Ends: ends, Counts: make([]uint64, len(ends)+1)}
		for k, text := range of {
			of[k] = strings.Clone(text) // it may be a piece of a line
		}
		all[of] = s
	}
	s.Add(v)
}

// validUTF8 makes a name valid UTF-8, as a page does. Names that would look alike there are then one series here.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// modelOf returns the label of a model. Only the first models get a label of their own, so that labels are bounded.
func (g *GenAI) modelOf(model string) string {
	model = validUTF8(model)
	switch {
	case g.models[model]:
	case len(g.models) >= observe.MaxLanes:
		return observe.OtherLanes
	default:
		g.models[strings.Clone(model)] = true // it may be a piece of a line
	}
	return model
}

// operationOf returns the conventions' word for an endpoint; where they have none, the last part of the endpoint's
// name.
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
