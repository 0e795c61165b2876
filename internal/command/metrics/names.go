package metrics

import (
	"slices"

	"github.com/headrace/headrace/internal/command/metrics/exposition"
)

// A family is one metric of ours.
type family = exposition.Family

// families lists every metric of ours, in the order of the documentation.
var families []*family

func add(kind exposition.Kind, name, help string, labels []string) *family {
	f := &family{Name: "headrace_" + name, Help: help, Labels: labels, Kind: kind}
	families = append(families, f)
	return f
}

// Names lists every metric of a run, in the order of the documentation.
func Names() []exposition.Family {
	var all []exposition.Family
	for _, f := range slices.Concat(families, []*family{durations, tokenUsage}) {
		all = append(all, *f)
	}
	return all
}

func gauge(name, help string, labels ...string) *family {
	return add(exposition.Gauge, name, help, labels)
}

func counter(name, help string, labels ...string) *family {
	return add(exposition.Counter, name, help, labels)
}

func histogram(name, help string, labels ...string) *family {
	return add(exposition.Histogram, name, help, labels)
}

// The metrics. Their names and labels are a promise to dashboards and alerts.
var (
	buildInfo = gauge("build_info", "What is running; always 1.", "version", "goversion", "revision")

	runStart     = gauge("run_start_timestamp_seconds", "When the run began, as Unix time.")
	runItems     = gauge("run_items", "Items of the whole input; absent while that is not known.")
	runBefore    = gauge("run_items_before", "Items of the input that earlier runs have ended.")
	runRemaining = gauge("run_remaining_seconds", "Forecast of the time to the end; absent while it cannot be said.", "estimate")
	runBound     = counter("run_bound_seconds_total", "Time for which this held the run back; the sum over bound is the time since the start.", "bound")
	runAllowed   = gauge("run_allowed_items_per_second", "Items a second that the limits would let through; absent while that is not known.")
	runEfficient = gauge("run_efficiency_ratio", "Items answered, of those that the limits would have let through since the start.")
	lastAnswer   = gauge("last_answer_timestamp_seconds", "When an item was last seen to end, as Unix time; absent before the first.")

	items         = counter("items_total", "Items that have ended in this run; result is succeeded, failed or not_run.", "lane", "result")
	itemsFailed   = counter("items_failed_total", "Items that have failed for good, by the kind of failure.", "kind")
	itemsHeld     = gauge("items_held", "Items taken from the input that wait; state is waiting, parked (after a refusal) or delayed (for themselves).", "state")
	redistributed = counter("items_redistributed_total", "Times an item that had met a refusal was given out again.")
	truncated     = counter("answers_truncated_total", "Answers that ended at their max_tokens.", "lane")

	calls        = counter("calls_total", "Calls that have ended; outcome is answered, throttled, broke or failed.", "lane", "outcome")
	callsFlying  = gauge("calls_in_flight", "Calls in flight.", "lane")
	callsMost    = gauge("calls_in_flight_max", "Calls that may be in flight: the user's ceiling.")
	callTime     = histogram("call_duration_seconds", "Time from sending a call to the end of its answer; outcome is answered or other.", "lane", "outcome")
	queueTime    = histogram("item_queue_seconds", "Time of items before their first call.")
	betweenTime  = histogram("item_between_seconds", "Time of items between their calls, of those that were called more than once.")
	limitRate    = gauge("limit_rate", "What a limit of the provider is believed to let through, in units a second.", "lane", "limit", "source")
	limitUsed    = gauge("limit_used_ratio", "Share of that limit which was drawn over the last 10 seconds.", "lane", "limit")
	lanePhase    = gauge("lane_phase", "Which phase a lane is in: 1 for that one, 0 for the others.", "lane", "phase")
	laneCooled   = counter("lane_cooldowns_total", "Cooldowns begun.", "lane")
	laneProbes   = counter("lane_probes_total", "Calls that were sent to find out whether the provider lets calls in again.", "lane")
	tokens       = counter("tokens_total", "Tokens as the provider counted them; cached ones are also in input.", "lane", "type")
	costUSD      = counter("cost_usd_total", "Known cost of all items that have ended in this run, in US dollars.", "lane")
	costUnpriced = counter("cost_unpriced_items_total", "Items that have ended without a known cost.", "lane")
	costCap      = gauge("cost_usd_max", "The user's cap, in US dollars; absent if there is none.")
	costSpent    = gauge("cost_usd_spent", "Spent against the cap, by earlier runs too, in US dollars; absent without a cap.")
	costReserved = gauge("cost_usd_reserved", "Reserved for calls in flight, in US dollars; absent without a cap.")

	pendingLines = gauge("journal_pending_lines", "Result lines that are not on the disk yet.")
)
