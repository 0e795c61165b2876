package provider

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/provider/rawjson"
)

// The forms in which messages describe the limit that was hit:
//
//	Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used
//	29937, Requested 385. Please try again in 644ms.
//	Limit: 3 / min. Please try again in 20s.
//	…would exceed your organization's rate limit of 40,000 input tokens per minute.
//	…have exceeded token rate limit… Please retry after 6 seconds.
var (
	noteLimit     = regexp.MustCompile(`\blimit(?: of|:)? ([0-9][0-9,]*)`)
	noteUsed      = regexp.MustCompile(`\b(?:used|current):? ([0-9][0-9,]*)`)
	noteRequested = regexp.MustCompile(`\brequested:? ([0-9][0-9,]*)`)
	noteOn        = regexp.MustCompile(`\b(input |output |prompt )?(token|request)s?(?:_usage_based)? per[ -]`)
	notePer       = regexp.MustCompile(`(?:\bper[ -]?| / ?|[0-9]/)(sec|min|hour|day|month)|\b(daily|monthly)\b`)
	noteAgain     = regexp.MustCompile(`\b(?:try again|retry|wait) (?:in|after|for) (?:([0-9][0-9hms.]*[hms])\b|([0-9]+(?:\.[0-9]+)?) ?(second|minute|hour|day))`)
)

var periods = map[string]string{
	"sec": "second", "min": "min", "hour": "hour", "day": "day", "daily": "day", "month": "month", "monthly": "month",
}

var units = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
}

// readNote reads a limit off a message in lower case.
func readNote(text string) QuotaNote {
	var n QuotaNote
	n.Limit = noteNumber(noteLimit, text)
	n.Used = noteNumber(noteUsed, text)
	n.Requested = noteNumber(noteRequested, text)
	if m := notePer.FindStringSubmatch(text); m != nil {
		n.Per = periods[m[1]+m[2]]
	}
	if m := noteOn.FindStringSubmatch(text); m != nil {
		n.On = dimensionOf(m[1], m[2])
	}
	n.TryAgain = noteWait(text)
	return n
}

func dimensionOf(side, what string) Dimension {
	switch {
	case what == "request":
		return Requests
	case side == "output ":
		return OutputTokens
	case side != "":
		return InputTokens
	}
	return Tokens
}

func noteNumber(re *regexp.Regexp, text string) float64 {
	m := re.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	x, _ := quantity(strings.ReplaceAll(m[1], ",", ""))
	return x
}

// noteWait reads "try again in 1m2.5s" or "retry after 6 seconds".
func noteWait(text string) time.Duration {
	m := noteAgain.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	if m[1] != "" {
		d, err := time.ParseDuration(m[1])
		if err != nil {
			return 0
		}
		return min(max(d, 0), MaxRetryAfter)
	}
	x, err := strconv.ParseFloat(m[2], 64)
	if err != nil {
		return 0
	}
	return bounded(x * units[m[3]].Seconds())
}

// googleDetails holds the contents of Google's error details.
type googleDetails struct {
	retry    time.Duration
	hasRetry bool
	// quota: a QuotaFailure names quotas; daily: one of them counts by the day.
	quota, daily bool
	note         QuotaNote
	reasons      []string
}

// maxDetails bounds how many details and violations are read.
const maxDetails = 32

func readGoogle(details []byte) googleDetails {
	var g googleDetails
	seen := 0
	for w := rawjson.WalkIn(details); w.Next() && seen < maxDetails; seen++ {
		d := w.Skip()
		switch kind := text(at(d, "@type")); {
		case strings.HasSuffix(kind, "google.rpc.RetryInfo"):
			g.retry, g.hasRetry = googleDelay(text(at(d, "retryDelay")))
		case strings.HasSuffix(kind, "google.rpc.QuotaFailure"):
			g.readQuota(at(d, "violations"))
		case strings.HasSuffix(kind, "google.rpc.ErrorInfo"):
			g.reasons = append(g.reasons, word(at(d, "reason")))
		}
	}
	return g
}

func (g *googleDetails) readQuota(violations []byte) {
	seen := 0
	for w := rawjson.WalkIn(violations); w.Next() && seen < maxDetails; {
		v := w.Skip()
		id := strings.ToLower(text(at(v, "quotaId")))
		if id == "" {
			continue
		}
		daily := strings.Contains(id, "perday") || strings.Contains(id, "daily")
		if !g.quota || (daily && !g.daily) {
			g.note = googleNote(v, daily)
		}
		g.quota, g.daily = true, g.daily || daily
		seen++
	}
}

func googleNote(v []byte, daily bool) QuotaNote {
	n := QuotaNote{Per: "min", On: Requests}
	n.Limit, _ = quantity(word(at(v, "quotaValue")))
	if daily {
		n.Per = "day"
	}
	if strings.Contains(text(at(v, "quotaMetric")), "token") {
		n.On = InputTokens
	}
	return n
}

func googleDelay(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || len(s) > maxWord {
		return 0, false
	}
	return min(d, MaxRetryAfter), true
}
