package provider_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/headrace/headrace/provider"
)

// Each kind decides what the table of failures says.
func TestKindTable(t *testing.T) {
	for _, c := range []struct {
		kind                                         provider.Kind
		word                                         string
		again, attempt, cools, breaker, stops, ended bool
		first, later                                 int
		exit                                         int
	}{
		{provider.Unknown, "unknown", true, true, false, true, false, false, 0, 0, 1},
		{provider.Throttled, "throttled", true, false, true, false, false, false, 0, 0, 1},
		{provider.Overloaded, "overloaded", true, false, true, true, false, false, 0, 0, 1},
		{provider.QuotaExhausted, "quota_exhausted", false, false, false, false, true, false, 0, 0, 3},
		{provider.Unauthorized, "unauthorized", false, false, false, false, false, false, 1, 5, 3},
		{provider.Timeout, "timeout", true, true, false, true, false, false, 0, 0, 1},
		{provider.TransportFault, "transport", true, true, false, true, false, false, 0, 0, 1},
		{provider.EmptyAnswer, "empty_answer", true, true, false, true, false, false, 0, 0, 1},
		{provider.Server, "server", true, true, false, true, false, false, 0, 0, 1},
		{provider.Invalid, "invalid", false, false, false, false, false, false, 0, 0, 1},
		{provider.Refused, "refused", false, false, false, false, false, false, 0, 0, 1},
		{provider.Truncated, "truncated", false, false, false, false, false, false, 0, 0, 1},
		{provider.Canceled, "canceled", false, false, false, false, false, false, 0, 0, 130},
		{provider.ModelNotFound, "model_not_found", false, false, false, false, false, false, 1, 5, 3},
		{provider.Misconfigured, "misconfigured", false, false, false, false, true, true, 0, 0, 2},
		{provider.Misfit, "schema", false, false, false, false, false, false, 0, 0, 1},
		{provider.Kind(200), "unknown", true, true, false, true, false, false, 0, 0, 1},
	} {
		k := c.kind
		if k.String() != c.word || k.Error() != c.word || fmt.Sprint(k) != c.word {
			t.Errorf("%d is called %q, want %q", k, k, c.word)
		}
		got := []bool{k.Again(), k.UsesAttempt(), k.Cools(), k.BreakerCounts(), k.StopsLane(), k.StopsRun()}
		want := []bool{c.again, c.attempt, c.cools, c.breaker, c.stops, c.ended}
		if !slices.Equal(got, want) || k.ExitCode() != c.exit {
			t.Errorf("%v: again, attempt, cools, breaker, stops, run = %v, exit %d; want %v, %d", k, got, k.ExitCode(), want, c.exit)
		}
		if first, later := k.StopsLaneAfter(); first != c.first || later != c.later {
			t.Errorf("%v stops its lane after %d items, %d later; want %d, %d", k, first, later, c.first, c.later)
		}
	}
}

// What an end means is known in whatever letters a provider writes it, and of no other
// word anything is made.
func TestFinishKind(t *testing.T) {
	for finish, want := range map[string]provider.Kind{
		"length": provider.Truncated, "max_tokens": provider.Truncated, "max_output_tokens": provider.Truncated,
		"MAX_TOKENS": provider.Truncated, "model_length": provider.Truncated, "model_context_window_exceeded": provider.Truncated,
		"content_filter": provider.Refused, "refusal": provider.Refused, "content_filtered": provider.Refused, "guardrail_intervened": provider.Refused,
		"SAFETY": provider.Refused, "RECITATION": provider.Refused, "LANGUAGE": provider.Refused, "BLOCKLIST": provider.Refused,
		"PROHIBITED_CONTENT": provider.Refused, "SPII": provider.Refused, "MODEL_ARMOR": provider.Refused, "IMAGE_SAFETY": provider.Refused, "IMAGE_RECITATION": provider.Refused,
		"stop": provider.Unknown, "STOP": provider.Unknown, "": provider.Unknown, "OTHER": provider.Unknown, "NO_IMAGE": provider.Unknown,
		"MALFORMED_FUNCTION_CALL": provider.Unknown, "tool_use": provider.Unknown, "COMPLETE": provider.Unknown, "ERROR": provider.Unknown,
	} {
		if got, marked := provider.FinishKind(finish); got != want || marked != (want != provider.Unknown) {
			t.Errorf("%q: %v, %v, want %v", finish, got, marked, want)
		}
	}
}

// Every word for an end that a provider has means one of five things.
func TestEndOf(t *testing.T) {
	for want, words := range map[provider.End][]string{
		"":                  {""},
		provider.EndStop:    {"stop", "STOP", "end_turn", "stop_sequence", "COMPLETE", "STOP_SEQUENCE", "completed", "eos"},
		provider.EndLength:  {"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "model_context_window_exceeded"},
		provider.EndTool:    {"tool_calls", "tool_use", "function_call", "TOOL_CALL"},
		provider.EndRefused: {"content_filter", "refusal", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY", "guardrail_intervened", "content_filtered", "sensitive", "no_content", "content_filter: PROHIBITED_CONTENT"},
		provider.EndOther: {
			"pause_turn", "OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE",
			"NO_IMAGE", "malformed_model_output", "malformed_tool_use", "ERROR", "TIMEOUT", "insufficient_system_resource", "error", "load", "odd", "network_error", "content_filter_error",
		},
	} {
		for _, word := range words {
			if got := provider.EndOf(word); got != want {
				t.Errorf("%q: %q, want %q", word, got, want)
			}
		}
	}
}
