package batch

import (
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Limits of a provider that headers and error bodies show, in the law's terms.

var dimensions = map[provider.Dimension]limiter.Dimension{
	provider.Requests:     limiter.Requests,
	provider.Tokens:       limiter.Tokens,
	provider.InputTokens:  limiter.InputTokens,
	provider.OutputTokens: limiter.OutputTokens,
}

// periods holds the periods that a message names, where a run can follow a limit of them. A
// limit by the day stops the lane instead.
var periods = map[string]time.Duration{"second": time.Second, "min": time.Minute, "hour": time.Hour}

// sighted returns the limits that headers show, with what is known of the headers of their
// lane. It ignores a limit of 0.
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

// windowOf returns the period of a limit: the lane's setting, or that of a family whose
// headers always mean the same. It returns 0 if the law must find the period out.
func windowOf(l *provider.RateLimit, lane *machine.LaneConfig) time.Duration {
	if lane != nil {
		if per := lane.Periods.Of(l.Family, dimensions[l.On]); per > 0 {
			return per
		}
	}
	return windows[l.Family]
}

// windows holds the periods of families that mean the same for every provider. Their names
// say it, except for Together's.
var windows = map[string]time.Duration{"plain": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// noQuota turns a refusal whose headers show a limit of 0 into QuotaExhausted, if the
// lane knows what they mean. No rate was exceeded then: there is no quota. Other failures
// stay as they are.
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

// noted returns the limit that the message of a refusal spells out, which is as good as a
// header. Its remainder is the limit less the used units.
func noted(q provider.QuotaNote) (limiter.Sighting, bool) {
	window, known := periods[q.Per]
	if !known || q.Limit <= 0 || q.Used < 0 || q.Used > q.Limit {
		return limiter.Sighting{}, false
	}
	return limiter.Sighting{
		Dimension: dimensions[q.On], Limit: q.Limit, Window: window, Remaining: q.Limit - q.Used, Said: true,
	}, dimensions[q.On] != limiter.None
}
