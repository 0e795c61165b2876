package batch

import (
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
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

// sighted is what headers show, by what is known of those of their lane. A limit of 0 is
// none to go by.
func sighted(limits []provider.RateLimit, lane *machine.LaneConfig) []limiter.Sighting {
	if len(limits) == 0 {
		return nil
	}
	seen := make([]limiter.Sighting, 0, len(limits))
	for i := range limits {
		l := &limits[i]
		if l.Limit == 0 {
			continue
		}
		seen = append(seen, limiter.Sighting{
			Dimension: dimensions[l.On], Limit: l.Limit, Window: windowOf(l, lane),
			Remaining: l.Remaining, Reset: l.Reset, HasReset: l.HasReset,
		})
	}
	return seen
}

// windowOf is the period of a limit: as the lane says, or that of a family whose headers
// always mean the same; 0 where it has to be found out.
func windowOf(l *provider.RateLimit, lane *machine.LaneConfig) time.Duration {
	if lane != nil {
		if per := lane.Periods.Of(l.Family, dimensions[l.On]); per > 0 {
			return per
		}
	}
	return windows[l.Family]
}

// windows are the periods of families that mean always the same, whoever answers: their
// names say it, but for Together's.
var windows = map[string]time.Duration{"plain": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// noQuota is the refusal whose headers show a limit of 0, where the lane knows what they
// mean: it is no rate that was exceeded, there is none. It gives the others as they are.
func (e ending) noQuota(fault *provider.Error) *provider.Error {
	if fault.Kind != provider.Throttled || e.lane == nil {
		return fault
	}
	for i := range e.record.Limits {
		l := &e.record.Limits[i]
		if l.Limit == 0 && e.lane.Periods.Of(l.Family, dimensions[l.On]) > 0 {
			exhausted := *fault
			exhausted.Kind = provider.QuotaExhausted
			exhausted.Message = strings.TrimPrefix(fmt.Sprintf("%s: no quota for this model, its limit of %s is 0", fault.Message, dimensions[l.On]), ": ")
			return &exhausted
		}
	}
	return fault
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
