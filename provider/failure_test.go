package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
)

// refusal is a 429 with that prose.
func refusal(prose string) *provider.Error {
	return provider.Classify(http.StatusTooManyRequests, nil, fmt.Appendf(nil, `{"error":{"message":%q}}`, prose))
}

// A limit's period is read off the prose however it is spelled; a day's or a month's ends the
// quota, and a shorter one does not.
func TestPeriodInProse(t *testing.T) {
	for _, tt := range []struct{ prose, per string }{
		{"You have hit your daily limit.", "day"},
		{"Daily quota exceeded", "day"},
		{"Limit 200 requests per day", "day"},
		{"200 requests per-day are allowed", "day"},
		{"Limit: 3 / day", "day"},
		{"Limit: 3/day", "day"},
		{"free-models-per-day", "day"},
		{"You have hit your monthly limit.", "month"},
		{"1000 API calls / month", "month"},
		{"tokens per month", "month"},
		{"Limit: 3 / min.", "min"},
		{"tokens per minute", "min"},
		{"requests per hour", "hour"},
		{"requests per second", "second"},
		{"Rate limit exceeded", ""},
		{"The dailyness of days", ""}, // a word must be whole
		{"nondaily traffic", ""},
		{"Retry in a day", ""},
	} {
		e := refusal(tt.prose)
		want := provider.Throttled
		if tt.per == "day" || tt.per == "month" {
			want = provider.QuotaExhausted
		}
		if e.Quota.Per != tt.per || e.Kind != want {
			t.Errorf("%q: per %q, %v, want per %q, %v", tt.prose, e.Quota.Per, e.Kind, tt.per, want)
		}
	}
}

// A day's limit that is fresh again within minutes is a throttle.
func TestDayThatEndsSoon(t *testing.T) {
	if e := refusal("Limit 200 requests per day. Please try again in 4m59s."); e.Kind != provider.Throttled || e.RetryAfter != 299*time.Second {
		t.Errorf("%v after %v", e.Kind, e.RetryAfter)
	}
	if e := refusal("Limit 200 requests per day. Please try again in 5m1s."); e.Kind != provider.QuotaExhausted {
		t.Errorf("%v", e.Kind)
	}
}

// A wait in prose is read in its units; one that is no number is none.
func TestWaitInProse(t *testing.T) {
	for prose, want := range map[string]time.Duration{
		"Please try again in 644ms.":                             644 * time.Millisecond,
		"Please retry after 6 seconds.":                          6 * time.Second,
		"wait for 2 minutes":                                     2 * time.Minute,
		"try again in 1.5 hours":                                 90 * time.Minute,
		"try again in 1 day":                                     24 * time.Hour,
		"try again after " + strings.Repeat("9", 400) + " hours": 0,
		"try again in 1h2h3x4s":                                  0,
		"try again later":                                        0,
	} {
		if e := refusal(prose); e.Quota.TryAgain != want {
			t.Errorf("%.40q: %v, want %v", prose, e.Quota.TryAgain, want)
		}
	}
}

// google is a 429 with those details.
func google(details ...string) *provider.Error {
	body := `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[` + strings.Join(details, ",") + `]}}`
	return provider.Classify(http.StatusTooManyRequests, nil, []byte(body))
}

func delay(d string) string {
	return `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + d + `"}`
}

func failure(violations ...string) string {
	return `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[` + strings.Join(violations, ",") + `]}`
}

func violation(id string) string { return `{"quotaId":"` + id + `","quotaValue":"50"}` }

// Google's delay counts if it is a duration that lies ahead, or now.
func TestGoogleDelay(t *testing.T) {
	for text, want := range map[string]struct {
		wait time.Duration
		has  bool
	}{
		"34.07s": {34070 * time.Millisecond, true}, "0s": {0, true}, "1ns": {1, true},
		strings.Repeat("0", 255) + "s": {0, true}, "-1ns": {}, "-5s": {}, "": {}, "5": {}, "soon": {}, strings.Repeat("0", 256) + "s": {},
	} {
		if e := google(delay(text)); e.HasRetryAfter != want.has || e.RetryAfter != want.wait {
			t.Errorf("%.20q: %v, %v, want %v, %v", text, e.RetryAfter, e.HasRetryAfter, want.wait, want.has)
		}
	}
}

// A quota by the day is found among others, in either spelling, also behind a violation without
// a name. Of two quotas the day's is reported.
func TestGoogleDay(t *testing.T) {
	minute, day := violation("GenerateRequestsPerMinutePerProject"), violation("GenerateRequestsPerDayPerProject")
	for name, e := range map[string]*provider.Error{
		"alone": google(failure(day)), "before": google(failure(day, minute)), "behind": google(failure(minute, day)),
		"daily": google(failure(violation("DailyLimit"))), "behind one without a name": google(failure(`{"quotaValue":"1"}`, day)),
	} {
		if e.Kind != provider.QuotaExhausted || e.Quota.Per != "day" || e.Quota.Limit != 50 {
			t.Errorf("%s: %v, %+v", name, e.Kind, e.Quota)
		}
	}
	if e := google(failure(minute)); e.Kind != provider.Throttled || e.Quota.Per != "min" {
		t.Errorf("a minute's: %v, %+v", e.Kind, e.Quota)
	}
}

// Of details and violations so many are read, and no more.
func TestGoogleDetailsAreBounded(t *testing.T) {
	const most = 32
	other := func(n int) []string {
		return strings.Split(strings.TrimSuffix(strings.Repeat(`{"@type":"type.googleapis.com/google.rpc.Help"},`, n), ","), ",")
	}
	if e := google(append(other(most-1), delay("7s"))...); e.RetryAfter != 7*time.Second {
		t.Errorf("the last one that is read says %v", e.RetryAfter)
	}
	if e := google(append(other(most), delay("7s"))...); e.HasRetryAfter {
		t.Errorf("one too many says %v", e.RetryAfter)
	}
	minutes := make([]string, most)
	for i := range minutes {
		minutes[i] = violation("PerMinute")
	}
	day := violation("PerDay")
	if e := google(failure(append(minutes[:most-1:most-1], day)...)); e.Kind != provider.QuotaExhausted {
		t.Errorf("the last violation that is read: %v", e.Kind)
	}
	if e := google(failure(append(minutes, day)...)); e.Kind != provider.Throttled {
		t.Errorf("one violation too many: %v", e.Kind)
	}
	if e := google(failure(strings.Repeat(`{"quotaValue":"1"},`, most) + day)); e.Kind != provider.Throttled {
		t.Errorf("behind too many violations without a name: %v", e.Kind)
	}
}
