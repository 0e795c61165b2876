package provider_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
)

var noon = time.Date(2025, 11, 21, 12, 0, 0, 0, time.UTC)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// Retry-After is understood in every form, bounded, and garbage is as if absent.
func TestParseRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     http.Header
		want  time.Duration
		found bool
	}{
		{"absent", header(), 0, false},
		{"seconds", header("retry-after", "20"), 20 * time.Second, true},
		{"float", header("retry-after", " 1.5 "), 1500 * time.Millisecond, true},
		{"zero", header("retry-after", "0"), 0, true},
		{"negative", header("retry-after", "-1"), 0, false},
		{"ten years", header("retry-after", "315360000"), 0, false},
		{"overflow", header("retry-after", "1e300"), 0, false},
		{"infinite", header("retry-after", "1e999"), 0, false},
		{"inf", header("retry-after", "inf"), 0, false},
		{"nan", header("retry-after", "nan"), 0, false},
		{"hexadecimal", header("retry-after", "0x1p4"), 0, false},
		{"garbage", header("retry-after", "in a while"), 0, false},
		{"date", header("retry-after", noon.Add(90*time.Second).Format(http.TimeFormat)), 90 * time.Second, true},
		{"date in the past", header("retry-after", noon.Add(-time.Hour).Format(http.TimeFormat)), 0, true},
		{"date in ten years", header("retry-after", noon.AddDate(10, 0, 0).Format(http.TimeFormat)), 0, false},
		{"date in the year 9999", header("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"), 0, false},
		{"a day", header("retry-after", "86400"), provider.MaxRetryAfter, true},
		{"a second more than a day", header("retry-after", "86401"), 0, false},
		{"milliseconds of a year", header("retry-after", "9", "retry-after-ms", "31536000000"), 9 * time.Second, true},
		{"milliseconds first", header("retry-after", "9", "retry-after-ms", "250"), 250 * time.Millisecond, true},
		{"milliseconds garbage", header("retry-after", "9", "retry-after-ms", "soon"), 9 * time.Second, true},
		{"milliseconds negative", header("retry-after", "9", "retry-after-ms", "-4"), 9 * time.Second, true},
		{
			"date by the server's clock, not ours",
			header("retry-after", "Fri, 21 Nov 2025 08:00:30 GMT", "date", "Fri, 21 Nov 2025 08:00:00 GMT"), 30 * time.Second, true,
		},
	} {
		if got, found := provider.ParseRetryAfter(c.h, noon); got != c.want || found != c.found {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, got, found, c.want, c.found)
		}
	}
}

// A wait that no server can mean is kept as it came, cut to a line, so that it can be said;
// one that can be meant, or none, is not odd.
func TestOddWaitIsKept(t *testing.T) {
	for odd, h := range map[string]http.Header{
		"":                        header("retry-after", "86400", "retry-after-ms", "soon"),
		"retry-after: 315360000":  header("retry-after", "315360000"),
		"retry-after: -5":         header("retry-after", "-5"),
		"retry-after: in a while": header("retry-after", "in a\x1bwhile"),
		"retry-after-ms: 1e300":   header("retry-after-ms", "1e300"),
		"retry-after: Fri, 31 Dec 9999 23:59:59 GMT": header("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
	} {
		e := provider.Classify(429, h, nil)
		if e.OddWait != odd || e.HasRetryAfter != (odd == "") || e.Kind.StopsLane() != (odd == "") {
			t.Errorf("%v: odd %q, want %q; %v, after %v", h, e.OddWait, odd, e, e.RetryAfter)
		}
	}
	if e := provider.Classify(429, nil, nil); e.OddWait != "" {
		t.Errorf("none was named: %q", e.OddWait)
	}
	if e := provider.Classify(429, header("retry-after", strings.Repeat("9", 10_000)), nil); len(e.OddWait) > 100 {
		t.Errorf("%d bytes are kept", len(e.OddWait))
	}
}

// Every family is read; what is absent, −1, 0 or contradictory is not.
func TestRateLimits(t *testing.T) {
	in := func(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }
	for _, c := range []struct {
		name string
		h    http.Header
		want []provider.RateLimit
	}{
		{"none", header(), nil},
		{"openai", header(
			"x-ratelimit-limit-requests", "60", "x-ratelimit-remaining-requests", "59", "x-ratelimit-reset-requests", "1s",
			"x-ratelimit-limit-tokens", "150000", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s",
		), []provider.RateLimit{
			{On: provider.Requests, Limit: 60, Remaining: 59, Reset: time.Second, HasReset: true, Family: "openai"},
			{On: provider.Tokens, Limit: 150000, Remaining: 0, Reset: 6 * time.Minute, HasReset: true, Family: "openai"},
		}},
		{"anthropic", header(
			"anthropic-ratelimit-output-tokens-limit", "8000", "anthropic-ratelimit-output-tokens-remaining", "7000",
			"anthropic-ratelimit-output-tokens-reset", in(7*time.Second),
		), []provider.RateLimit{{On: provider.OutputTokens, Limit: 8000, Remaining: 7000, Reset: 7 * time.Second, HasReset: true, Family: "anthropic"}}},
		{"generic with windows", header(
			"ratelimit-limit", "100, 1000;w=3600", "ratelimit-remaining", "50", "ratelimit-reset", "30",
		), []provider.RateLimit{{On: provider.Requests, Limit: 100, Remaining: 50, Reset: 30 * time.Second, HasReset: true, Family: "generic"}}},
		{"absent remainder is not 0", header("x-ratelimit-limit-requests", "60"), nil},
		{"azure without limit", header("x-ratelimit-limit-tokens", "-1", "x-ratelimit-remaining-tokens", "-1"), nil},
		{"limit 0", header("x-ratelimit-limit-tokens", "0", "x-ratelimit-remaining-tokens", "0"), nil},
		{"remainder over the limit", header("x-ratelimit-limit-requests", "20", "x-ratelimit-remaining-requests", "119"), nil},
		{"garbage", header("x-ratelimit-limit-requests", "many", "x-ratelimit-remaining-requests", "1"), nil},
		{"absurd", header("x-ratelimit-limit-requests", "1e18", "x-ratelimit-remaining-requests", "1"), nil},
		{
			"no reset", header("x-ratelimit-limit", "10", "x-ratelimit-remaining", "3"),
			[]provider.RateLimit{{On: provider.Requests, Limit: 10, Remaining: 3, Family: "plain"}},
		},
		{"mistral", header(
			"x-ratelimit-limit-req-minute", "720", "x-ratelimit-remaining-req-minute", "717",
			"x-ratelimit-limit-tokens-minute", "5000000", "x-ratelimit-remaining-tokens-minute", "4999911", "x-ratelimit-tokens-query-cost", "52",
		), []provider.RateLimit{
			{On: provider.Requests, Limit: 720, Remaining: 717, Family: "minute"},
			{On: provider.Tokens, Limit: 5000000, Remaining: 4999911, Family: "minute"},
		}},
		{"cerebras, the shortest of each", header(
			"x-ratelimit-limit-requests-day", "14400", "x-ratelimit-remaining-requests-day", "14370",
			"x-ratelimit-limit-requests-hour", "900", "x-ratelimit-remaining-requests-hour", "899",
			"x-ratelimit-limit-tokens-day", "1000000", "x-ratelimit-remaining-tokens-day", "1",
			"x-ratelimit-limit-tokens-minute", "60000", "x-ratelimit-remaining-tokens-minute", "59000", "x-ratelimit-reset-tokens-minute", "11.38",
		), []provider.RateLimit{
			{On: provider.Tokens, Limit: 60000, Remaining: 59000, Reset: 11380 * time.Millisecond, HasReset: true, Family: "minute"},
			{On: provider.Requests, Limit: 900, Remaining: 899, Family: "hour"},
		}},
		{"sambanova, a minute's beside a day's", header(
			"x-ratelimit-limit-requests", "60", "x-ratelimit-remaining-requests", "59",
			"x-ratelimit-limit-requests-day", "12000", "x-ratelimit-remaining-requests-day", "1",
		), []provider.RateLimit{{On: provider.Requests, Limit: 60, Remaining: 59, Family: "openai"}}},
		{"fireworks", header(
			"x-ratelimit-limit-tokens-prompt", "60000", "x-ratelimit-remaining-tokens-prompt", "59000",
			"x-ratelimit-limit-tokens-generated", "600", "x-ratelimit-remaining-tokens-generated", "600",
		), []provider.RateLimit{
			{On: provider.InputTokens, Limit: 60000, Remaining: 59000, Family: "fireworks"},
			{On: provider.OutputTokens, Limit: 600, Remaining: 600, Family: "fireworks"},
		}},
	} {
		if got := provider.RateLimits(c.h, noon); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The form and magnitude of a reset show its unit; a reset that cannot be is left out.
func TestResets(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"120ms": 120 * time.Millisecond, "2m59.56s": 179560 * time.Millisecond, "1s": time.Second, "0s": 0,
		"60": time.Minute, "0.5": 500 * time.Millisecond, "86400": 24 * time.Hour,
		"1763726460": time.Minute, "1763726460500": 60500 * time.Millisecond, "1763720000": 0,
		"2025-11-21T12:00:05Z": 5 * time.Second, "2025-11-21T11:00:05Z": 0, "2025-11-21T13:00:00+01:00": 0,
		"Fri, 21 Nov 2025 12:00:09 GMT": 9 * time.Second,
		"":                              -1, "-5": -1, "-5s": -1, "soon": -1, "1e12e": -1, "9999999": -1, "9999h": -1, "1e15": -1,
		"2035-11-21T12:00:05Z": -1, "4102444800": -1,
	} {
		h := header("x-ratelimit-limit-requests", "2", "x-ratelimit-remaining-requests", "1", "x-ratelimit-reset-requests", s)
		got := provider.RateLimits(h, noon)
		if len(got) != 1 || got[0].HasReset != (want >= 0) || want >= 0 && got[0].Reset != want {
			t.Errorf("%q: %+v, want %v", s, got, want)
		}
	}
}

// The request id is found under each name, the most telling first.
func TestRequestID(t *testing.T) {
	for want, h := range map[string]http.Header{
		"a": header("x-request-id", "a", "cf-ray", "b"), "c": header("request-id", "c"),
		"d": header("apim-request-id", "d"), "e": header("x-amzn-requestid", "e"), "": header(),
	} {
		if got := provider.RequestID(h); got != want {
			t.Errorf("%v: %q, want %q", h, got, want)
		}
	}
}

// A limit is found by each family's headers alone.
func TestEachFamilyIsFoundAlone(t *testing.T) {
	for _, pattern := range []string{
		"X-Ratelimit-*-Requests", "X-Ratelimit-*-Tokens", "X-Ratelimit-*-Project-Tokens", "X-Ratelimit-*", "X-Tokenlimit-*",
		"Anthropic-Ratelimit-Requests-*", "Anthropic-Ratelimit-Tokens-*", "Anthropic-Ratelimit-Input-Tokens-*", "Anthropic-Ratelimit-Output-Tokens-*",
		"Ratelimit-*", "Ratelimit-*-Requests", "Ratelimit-*-Tokens", "X-Ratelimit-*-Tokens-Prompt", "X-Ratelimit-*-Tokens-Generated",
		"X-Ratelimit-*-Req-Minute", "X-Ratelimit-*-Requests-Minute", "X-Ratelimit-*-Tokens-Minute",
		"X-Ratelimit-*-Requests-Hour", "X-Ratelimit-*-Tokens-Hour", "X-Ratelimit-*-Requests-Day", "X-Ratelimit-*-Tokens-Day",
	} {
		h := http.Header{strings.Replace(pattern, "*", "Limit", 1): {"60"}, strings.Replace(pattern, "*", "Remaining", 1): {"59"}}
		if got := provider.RateLimits(h, noon); len(got) != 1 || got[0].Limit != 60 || got[0].Remaining != 59 {
			t.Errorf("%s: %+v", pattern, got)
		}
	}
}
