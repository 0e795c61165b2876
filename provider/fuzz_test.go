package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/providertest"
)

// Whatever a server answers, the verdict exists, is bounded and prints.
func FuzzClassify(f *testing.F) {
	for _, c := range providertest.Cases() {
		f.Add(c.Status, c.Header.Get("Retry-After"), c.Header.Get("X-Should-Retry"), c.Body)
	}
	f.Fuzz(func(t *testing.T, status int, wait, should string, body []byte) {
		h := http.Header{"Retry-After": {wait}, "X-Should-Retry": {should}}
		e := provider.Classify(status, h, body)
		if e == nil {
			if status/100 != 2 {
				t.Fatalf("status %d is an error and gave none", status)
			}
			provider.ReplyOf(status, h, body)
			return
		}
		if e.RetryAfter < 0 || e.RetryAfter > provider.MaxRetryAfter || e.Quota.TryAgain < 0 || e.Quota.TryAgain > provider.MaxRetryAfter {
			t.Errorf("waits %v, %v", e.RetryAfter, e.Quota.TryAgain)
		}
		if e.Kind > provider.Misconfigured || e.Kind == provider.Canceled || e.Kind == provider.Truncated {
			t.Errorf("kind %v cannot be an answer's", e.Kind)
		}
		if len(e.Body) > provider.MaxErrorBody || len(e.Error()) > 4<<10 {
			t.Errorf("body of %d bytes, text of %d", len(e.Body), len(e.Error()))
		}
		if text := e.Error(); !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00\x1b") {
			t.Errorf("not one printable line: %q", text)
		}
		if e.Kind.Cools() && e.HasRetryAfter && e.RetryAfter >= provider.MaxRetryAfter {
			t.Errorf("%v waits for a day", e.Kind)
		}
	})
}

// A wait is between 0 and its bound, whatever the header says.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "1.5", "-1", "1e300", "nan", "0x1p9", "Fri, 21 Nov 2025 11:00:00 GMT", "soon", ""} {
		f.Add(s, s, "Fri, 21 Nov 2025 11:00:00 GMT")
	}
	f.Fuzz(func(t *testing.T, seconds, millis, date string) {
		h := http.Header{"Retry-After": {seconds}, "Retry-After-Ms": {millis}, "Date": {date}}
		d, found := provider.ParseRetryAfter(h, noon)
		if d < 0 || d > provider.MaxRetryAfter || !found && d != 0 {
			t.Errorf("%v, %v", d, found)
		}
	})
}

// A limit that is believed is over 0, its remainder within it, its reset within
// a month.
func FuzzRateLimits(f *testing.F) {
	for _, s := range []string{"1s", "6m0s", "60", "1763726460", "1763726460500", "2025-11-21T12:00:05Z", "-1", "1e300", ""} {
		f.Add("60", "59", s)
	}
	f.Add("-1", "-1", "0")
	f.Add("100, 1000;w=3600", "5", "x")
	f.Fuzz(func(t *testing.T, limit, remaining, reset string) {
		h := http.Header{
			"X-Ratelimit-Limit-Tokens": {limit}, "X-Ratelimit-Remaining-Tokens": {remaining}, "X-Ratelimit-Reset-Tokens": {reset},
		}
		for _, r := range provider.RateLimits(h, noon) {
			// Written so that a NaN fails, too.
			if !(r.Limit > 0 && r.Remaining >= 0 && r.Remaining <= r.Limit) {
				t.Errorf("%+v", r)
			}
			if r.Reset < 0 || r.Reset > 32*24*time.Hour && r.HasReset {
				t.Errorf("%+v", r)
			}
		}
	})
}

var openAILimits = http.Header{
	"X-Ratelimit-Limit-Requests": {"500"}, "X-Ratelimit-Remaining-Requests": {"499"}, "X-Ratelimit-Reset-Requests": {"120ms"},
	"X-Ratelimit-Limit-Tokens": {"30000"}, "X-Ratelimit-Remaining-Tokens": {"63"}, "X-Ratelimit-Reset-Tokens": {"59.874s"},
}

func BenchmarkClassify(b *testing.B) {
	for _, name := range []string{"openai_rate_tokens", "openai_ok", "gemini_array_day"} {
		for _, c := range providertest.Cases() {
			if c.Name != name {
				continue
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					provider.Classify(c.Status, c.Header, c.Body)
				}
			})
		}
	}
}

func BenchmarkRateLimits(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		provider.RateLimits(openAILimits, noon)
	}
}
