package otelheadrace

import "go.opentelemetry.io/otel/attribute"

// Version is that of the semantic conventions whose words for generative AI are used here. Their status is
// Development: unlike all names that begin with headrace, these may change with a later version.
const Version = "1.40.0"

// The conventions' names.
const (
	durationName = "gen_ai.client.operation.duration"
	tokensName   = "gen_ai.client.token.usage"

	operationKey = attribute.Key("gen_ai.operation.name")
	providerKey  = attribute.Key("gen_ai.provider.name")
	modelKey     = attribute.Key("gen_ai.request.model")
	finishKey    = attribute.Key("gen_ai.response.finish_reasons")
	inputKey     = attribute.Key("gen_ai.usage.input_tokens")
	outputKey    = attribute.Key("gen_ai.usage.output_tokens")
	tokenTypeKey = attribute.Key("gen_ai.token.type")
	errorKey     = attribute.Key("error.type")
	serverKey    = attribute.Key("server.address")
	statusKey    = attribute.Key("http.response.status_code")
)

// The buckets that the conventions advise: 10 ms to 82 s, and 1 token to 67 million.
var (
	secondEnds = bucketBounds(0.01, 2)
	tokenEnds  = bucketBounds(1, 4)
)

// bucketBounds returns the upper bounds of 14 buckets. Each is factor times the one before.
func bucketBounds(first, factor float64) []float64 {
	bounds := make([]float64, 14)
	for k := range bounds {
		bounds[k] = first
		first *= factor
	}
	return bounds
}

// Our own attributes.
const (
	laneKey     = attribute.Key("lane")
	resultKey   = attribute.Key("result")
	kindKey     = attribute.Key("kind")
	stateKey    = attribute.Key("state")
	outcomeKey  = attribute.Key("outcome")
	limitKey    = attribute.Key("limit")
	sourceKey   = attribute.Key("source")
	phaseKey    = attribute.Key("phase")
	typeKey     = attribute.Key("type")
	boundKey    = attribute.Key("bound")
	estimateKey = attribute.Key("estimate")

	spanLaneKey    = attribute.Key("headrace.lane")
	spanAttemptKey = attribute.Key("headrace.attempt")
	spanProbeKey   = attribute.Key("headrace.probe")
	spanAgainKey   = attribute.Key("headrace.again")
	spanRequestKey = attribute.Key("headrace.request_id")
	spanItemsKey   = attribute.Key("headrace.items")
	spanFailedKey  = attribute.Key("headrace.items.failed")
	spanCallsKey   = attribute.Key("headrace.calls")
)

// limitWords holds the words for the limits, in the order of a view.
var limitWords = [...]string{"requests", "tokens", "input_tokens", "output_tokens"}
