package batch

import (
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// What headers and error bodies show of a provider's limits, in the law's words.

var dimensions = map[provider.Dimension]limiter.Dimension{
	provider.Requests:     limiter.Requests,
	provider.Tokens:       limiter.Tokens,
	provider.InputTokens:  limiter.InputTokens,
	provider.OutputTokens: limiter.OutputTokens,
}

// periods are those that a message names, where a limit of them can be followed
// within a run. A limit by the day stops the lane instead.
var periods = map[string]time.Duration{"second": time.Second, "min": time.Minute, "hour": time.Hour}

func sighted(limits []provider.RateLimit) []limiter.Sighting {
	if len(limits) == 0 {
		return nil
	}
	seen := make([]limiter.Sighting, 0, len(limits))
	for _, l := range limits {
		seen = append(seen, limiter.Sighting{
			Dimension: dimensions[l.On], Limit: l.Limit, Window: windowOf(l),
			Remaining: l.Remaining, Reset: l.Reset, HasReset: l.HasReset,
		})
	}
	return seen
}

// windowOf is the period of a family whose headers always mean the same; 0 where
// it has to be found out.
func windowOf(l provider.RateLimit) time.Duration {
	if l.Family == "plain" { // Together's: per second
		return time.Second
	}
	return 0
}

// noted is the limit that the message of a refusal spells out, which is as good
// as a header: what is left of it is the limit less what was used.
func noted(q provider.QuotaNote) (limiter.Sighting, bool) {
	window, known := periods[q.Per]
	if !known || q.Limit <= 0 || q.Used < 0 || q.Used > q.Limit {
		return limiter.Sighting{}, false
	}
	return limiter.Sighting{
		Dimension: dimensions[q.On], Limit: q.Limit, Window: window, Remaining: q.Limit - q.Used, Said: true,
	}, dimensions[q.On] != limiter.None
}
