package provider

import (
	"math"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the longest wait that a server can mean: a daily quota is the
// longest one that comes back by itself. Headers that ask for more (ten years have
// been seen in tests of other clients) name no wait.
const MaxRetryAfter = 24 * time.Hour

// maxReset caps the reset of a rate limit: the longest period in use is a
// month. A longer one is not believed at all.
const maxReset = 32 * 24 * time.Hour

// maxOdd bounds the part that is kept of a senseless header, in bytes: enough to recognise it.
const maxOdd = 80

// maxWord bounds short words of a provider's: codes, types, request ids.
const maxWord = 256

// Magnitudes that show the meaning of a bare number in a reset. 1e9 seconds after
// 1970 is 2001 and as a wait 31 years; 1e11 milliseconds after 1970 is 1973 and
// as seconds the year 5138: no value is sensible in two readings.
const (
	fromUnixSeconds = 1e9
	fromUnixMillis  = 1e11
	toUnixMillis    = 1e14
)

// maxQuantity bounds a limit or a remainder: over any quota in use, and exact
// in a float64.
const maxQuantity = 1e15

// Dimension is a quantity that a limit counts.
type Dimension string

// The dimensions. Tokens are input and output together.
const (
	Requests     Dimension = "requests"
	Tokens       Dimension = "tokens"
	InputTokens  Dimension = "input_tokens"
	OutputTokens Dimension = "output_tokens"
)

// RateLimit is one limit as a response's headers show it, at the moment when
// the server took the request.
type RateLimit struct {
	On Dimension
	// Limit is over 0 and Remaining is between 0 and Limit, both in units of On per period.
	// Headers do not name the period: infer it from Reset, or know it. The record of a refusal
	// (429) has limits of 0, too: where that provider's zeros mean anything, there is no quota.
	Limit, Remaining float64
	// Reset is the time until the limit is whole again, if HasReset: at least 0.
	Reset    time.Duration
	HasReset bool
	// Family names the family of the headers: "openai" (and compatible), "project" (OpenAI's
	// limit of the project), "anthropic", "plain" (x-ratelimit-* without a dimension: Together
	// means a second by it), "generic" (ratelimit-*), "fireworks", and "minute", "hour" and
	// "day" of names that end in that word (Mistral, Cerebras). Of these three a dimension
	// shows the shortest alone, and none if another family shows it. The code that follows a
	// limit follows one, and the shortest period is the one that binds.
	Family string
}

// limitHeaders are the names of one limit, in canonical form so that a look-up
// allocates nothing.
type limitHeaders struct {
	family                  string
	on                      Dimension
	limit, remaining, reset string
	last                    bool // it is read only where nothing before it shows the dimension
}

func named(family string, on Dimension, pattern string) limitHeaders {
	name := func(what string) string {
		return http.CanonicalHeaderKey(strings.Replace(pattern, "*", what, 1))
	}
	return limitHeaders{family: family, on: on, limit: name("limit"), remaining: name("remaining"), reset: name("reset")}
}

// lasting returns the names of a limit that comes after all others of its dimension.
func lasting(family string, on Dimension, pattern string) limitHeaders {
	names := named(family, on, pattern)
	names.last = true
	return names
}

var limitFamilies = []limitHeaders{
	named("openai", Requests, "x-ratelimit-*-requests"),
	named("openai", Tokens, "x-ratelimit-*-tokens"),
	named("project", Tokens, "x-ratelimit-*-project-tokens"),
	named("anthropic", Requests, "anthropic-ratelimit-requests-*"),
	named("anthropic", Tokens, "anthropic-ratelimit-tokens-*"),
	named("anthropic", InputTokens, "anthropic-ratelimit-input-tokens-*"),
	named("anthropic", OutputTokens, "anthropic-ratelimit-output-tokens-*"),
	named("plain", Requests, "x-ratelimit-*"),
	named("plain", Tokens, "x-tokenlimit-*"),
	named("generic", Requests, "ratelimit-*"),
	named("generic", Requests, "ratelimit-*-requests"),
	named("generic", Tokens, "ratelimit-*-tokens"),
	named("fireworks", InputTokens, "x-ratelimit-*-tokens-prompt"),
	named("fireworks", OutputTokens, "x-ratelimit-*-tokens-generated"),
	lasting("minute", Requests, "x-ratelimit-*-req-minute"), // Mistral, as the next
	lasting("minute", Requests, "x-ratelimit-*-req-60-second"),
	lasting("minute", Requests, "x-ratelimit-*-requests-minute"),
	lasting("minute", Tokens, "x-ratelimit-*-tokens-minute"),
	lasting("hour", Requests, "x-ratelimit-*-requests-hour"),
	lasting("hour", Tokens, "x-ratelimit-*-tokens-hour"),
	lasting("day", Requests, "x-ratelimit-*-requests-day"),
	lasting("day", Tokens, "x-ratelimit-*-tokens-day"),
}

// RateLimits reads every limit that the headers show completely: a limit over
// 0 and a remainder that is not over it. Absent, −1, 0 and contradictory ones
// are left out rather than believed; it returns nil if there are none. Dates are
// compared with the response's own Date, or with now if it has none.
func RateLimits(h http.Header, now time.Time) []RateLimit { return limitsIn(h, now, false) }

// limitsIn does the work of RateLimits. If withZeros is true, it also returns limits of 0.
func limitsIn(h http.Header, now time.Time, withZeros bool) []RateLimit {
	var out []RateLimit
	for present := familiesIn(h); present != 0; present &= present - 1 {
		names := &limitFamilies[bits.TrailingZeros64(present)]
		if names.last && slices.ContainsFunc(out, func(l RateLimit) bool { return l.On == names.on }) {
			continue
		}
		limit, ok := quantity(headerValue(h, names.limit))
		if !ok || limit == 0 && !withZeros {
			continue
		}
		remaining, ok := quantity(headerValue(h, names.remaining))
		if limit > 0 && !ok || remaining > limit {
			continue
		}
		found := RateLimit{On: names.on, Limit: limit, Remaining: remaining, Family: names.family}
		found.Reset, found.HasReset = parseReset(headerValue(h, names.reset), h, now)
		out = append(out, found)
	}
	return out
}

// familiesIn returns the limitFamilies whose limit is there, a bit for each. Walking through the
// headers once costs less than asking for two dozen that are not there.
func familiesIn(h http.Header) (present uint64) {
	for name := range h {
		if strings.Contains(name, limitMark) {
			if i, known := limitPlaces[name]; known {
				present |= 1 << i
			}
		}
	}
	return present
}

// limitMark is part of the name of every family's limit, in canonical form. The names for the
// remainder and the reset do not have it.
const limitMark = "-Limit"

// limitPlaces maps a limit's name to its index in limitFamilies.
var limitPlaces = placesOf(limitFamilies)

func placesOf(families []limitHeaders) map[string]int {
	places := map[string]int{}
	for i := range families {
		places[families[i].limit] = i
	}
	return places
}

// headerValue is h.Get for a name that is canonical already: checking that again costs
// more than the look-up.
func headerValue(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// quantity reads a number of at least 0. After a comma or semicolon come
// further windows and parameters ("100, 1000;w=3600"): the first is the one in force.
func quantity(s string) (float64, bool) {
	if i := strings.IndexAny(s, ",;"); i >= 0 {
		s = s[:i]
	}
	x, ok := number(strings.TrimSpace(s))
	return x, ok && x >= 0 && x <= maxQuantity
}

// number reads a plain decimal number. It refuses the forms that ParseFloat
// takes and no header means: hexadecimal, underscores, inf and nan.
func number(s string) (float64, bool) {
	if s == "" || len(s) > 32 || strings.Trim(s, "0123456789.+-eE") != "" {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
}

// ParseRetryAfter reads the wait that a response asks for: retry-after-ms, then
// retry-after as a number of seconds, then as an HTTP date, the order of the
// providers' own libraries. A date is compared with the response's own Date, so
// that a wrong local clock does no harm, or with now if it has none; one in the
// past means 0. Negative values, garbage and more than MaxRetryAfter count as absent.
func ParseRetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	wait, named, _ := retryAfter(h, now)
	return wait, named
}

// retryAfter does the work of ParseRetryAfter. In unusable it returns the header whose wait cannot
// be read or is impossible, "" if there is none.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, named bool, unusable string) {
	millis := strings.TrimSpace(headerValue(h, "Retry-After-Ms"))
	if ms, ok := number(millis); ok {
		if wait, named = plausibleWait(ms / 1000); named {
			return wait, true, ""
		}
	}
	seconds := strings.TrimSpace(headerValue(h, "Retry-After"))
	switch {
	case seconds == "" && millis == "":
		return 0, false, ""
	case seconds == "":
		return 0, false, clip("retry-after-ms: "+millis, maxOdd)
	}
	if x, ok := number(seconds); ok {
		wait, named = plausibleWait(x)
	} else if at, err := http.ParseTime(seconds); err == nil {
		wait = max(0, at.Sub(serverNow(h, now)))
		named = wait <= MaxRetryAfter
	}
	if !named {
		return 0, false, clip("retry-after: "+seconds, maxOdd)
	}
	return wait, true, ""
}

// plausibleWait converts seconds into a wait. It returns false if they are negative or more than
// MaxRetryAfter, which no provider can mean.
func plausibleWait(seconds float64) (time.Duration, bool) {
	if seconds < 0 || seconds > MaxRetryAfter.Seconds() {
		return 0, false
	}
	return bounded(seconds), true
}

// bounded turns seconds into a duration between 0 and MaxRetryAfter. It compares
// before it converts: a float64 over the range of a Duration converts to anything.
func bounded(seconds float64) time.Duration {
	if seconds <= 0 {
		return 0
	}
	if seconds >= MaxRetryAfter.Seconds() {
		return MaxRetryAfter
	}
	return time.Duration(seconds * float64(time.Second))
}

// serverNow returns the time of the server, as the response's Date shows it; now if there is no Date.
func serverNow(h http.Header, now time.Time) time.Time {
	if date := headerValue(h, "Date"); date != "" {
		if t, err := http.ParseTime(date); err == nil {
			return t
		}
	}
	return now
}

// parseReset reads a reset in any of its forms: a duration (6m0s), seconds, a
// Unix time in seconds or milliseconds, RFC 3339, an HTTP date.
func parseReset(value string, h http.Header, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > 64 {
		return 0, false
	}
	if x, ok := number(value); ok {
		return resetNumber(x, h, now)
	}
	if d, err := time.ParseDuration(value); err == nil {
		return d, d >= 0 && d <= maxReset
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		if at, err = http.ParseTime(value); err != nil {
			return 0, false
		}
	}
	return until(at, h, now)
}

// resetNumber reads a number by its magnitude: as seconds to wait, or as a Unix time in seconds or
// milliseconds. It returns false for a number that makes sense in no reading.
func resetNumber(x float64, h http.Header, now time.Time) (time.Duration, bool) {
	switch {
	case x < 0 || x >= toUnixMillis:
		return 0, false
	case x >= fromUnixMillis:
		return until(time.UnixMilli(int64(x)), h, now)
	case x >= fromUnixSeconds:
		return until(time.Unix(int64(x), 0), h, now)
	case x > maxReset.Seconds():
		return 0, false
	}
	return time.Duration(x * float64(time.Second)), true
}

// until returns the wait for a moment, 0 if it has passed. It returns false for a moment so far
// away that the reading must be wrong.
func until(at time.Time, h http.Header, now time.Time) (time.Duration, bool) {
	d := at.Sub(serverNow(h, now))
	return max(d, 0), d <= maxReset
}

// idRank ranks the headers with a request's id, the most telling highest; 0: the header has none.
func idRank(name string) int {
	switch name {
	case "X-Request-Id":
		return 10
	case "Request-Id":
		return 9
	case "Apim-Request-Id":
		return 8
	case "X-Ms-Request-Id":
		return 7
	case "X-Amzn-Requestid":
		return 6
	case "X-Generation-Id":
		return 5
	case "Mistral-Correlation-Id":
		return 4
	case "X-Kong-Request-Id":
		return 3
	case "X-Goog-Request-Id":
		return 2
	case "Cf-Ray":
		return 1
	}
	return 0
}

// RequestID returns the provider's id of the request, "" if the headers name none. It goes through
// the headers once: looking for each name costs three times as much, in every answer.
func RequestID(h http.Header) string {
	id, best := "", 0
	for name, values := range h {
		if rank := idRank(name); rank > best && len(values) > 0 && values[0] != "" {
			id, best = values[0], rank
		}
	}
	return clip(id, maxWord)
}
