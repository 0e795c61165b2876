package provider

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxHold is the longest wait for which a quota by the day, or one of Google's,
// still counts as a throttle; above it the quota is exhausted. gemini-cli stops to
// wait at five minutes, too.
const MaxHold = 5 * time.Minute

// unclearHold is the wait after a refusal that may mean a minute or a day: one
// whole minute, so that a quota by the minute is sure to be fresh.
const unclearHold = time.Minute

// Classify says what a response means. It returns nil if the response is fine: a 2xx
// that ClassifyOK accepts. The first of these decides:
//
//   - the size of the request against the limit
//   - codes and types of an empty account
//   - prose and headers that outweigh the code next to them
//   - all other codes and types
//   - all other prose
//   - the status
//
// x-should-retry has the last word over all but quotas, keys and filters. 408 counts
// as Timeout. 409, 425 and 499 count as Server, for they speak of the state of things
// and not of the request.
func Classify(status int, h http.Header, body []byte) *Error {
	return ClassifyIn(status, h, body)
}

// ClassifyIn is Classify with own words, which it asks before those of the whole world: a
// vendor's, then a dialect's, in the given order. They do not outweigh the size of a request
// that is over the limit, which is about that request alone. A nil Wording has no words.
func ClassifyIn(status int, h http.Header, body []byte, own ...*Wording) *Error {
	if status >= 200 && status < 300 {
		return classifyOK(status, h, body, own)
	}
	return judge(read(status, h, body), body, own)
}

// ClassifyOK says what is wrong with the body of a response whose status is
// 200; nil if nothing is. HTML and JSON that is cut short are of kind TransportFault.
// A body that is empty, or holds no answer in any provider's form, is of kind
// EmptyAnswer, unless it gives a reason for its end. OpenRouter sends an error object
// without any answer next to it. Such an error is classified by its own code as if that
// were the status. A prompt that Gemini blocked is Refused.
func ClassifyOK(body []byte) *Error { return classifyOK(http.StatusOK, nil, body, nil) }

func classifyOK(status int, h http.Header, body []byte, own []*Wording) *Error {
	var l answer
	kind, fault := l.check(body)
	return l.judge(kind, fault, status, h, body, own)
}

// statusWithin returns the status that an error in a 200 stands for, 0 if the error names
// none.
func statusWithin(a *failure) int {
	if n, err := strconv.Atoi(a.code); err == nil && n >= 400 && n < 600 {
		return n
	}
	for _, w := range a.words {
		if status, ok := weakWords[w]; ok {
			return status
		}
	}
	return 0
}

// judge makes the Error of a response taken apart.
func judge(a *failure, body []byte, own []*Wording) *Error {
	e := &Error{
		Status: a.status, Code: a.code, Type: a.kind, Param: a.param, Message: a.message,
		RequestID: cmp.Or(RequestID(a.header), a.id), Body: bound(body), Quota: readLimit(a.text),
	}
	if a.google.quota {
		a.google.limit.TryAgain = e.Quota.TryAgain
		e.Quota = a.google.limit
	}
	e.RetryAfter, e.HasRetryAfter, e.OddWait = retryAfter(a.header, time.Now())
	var sure bool
	e.Kind, sure = verdict(a, e, own)
	obeyShouldRetry(a, e, sure)
	e.addWait(a)
	e.Account = a.ofAccount(e)
	e.exhaust(a)
	if e.Kind == Throttled { // is it about the growth of the rate?
		e.Slow = slices.Contains(a.words, "slow_down") ||
			a.hasPhrase("acceleration limit", "usage increase rate", "sharp increase", "more gradually")
	}
	if e.Kind == Invalid && a.tooLong() {
		e.long = true
		if _, weak := weakWords[strings.ToLower(e.Code)]; e.Code == "" || weak || e.Code == strconv.Itoa(e.Status) { // it says no more than the status
			e.Code = tooLongCode
		}
	}
	if name := a.noQuota(); name != "" && e.Kind == QuotaExhausted { // the message may speak of a rate alone
		e.Message = clip(e.Message+": no quota for this model, its limit is 0 ("+name+")", maxMessage)
	}
	return e
}

// verdict returns the kind before the exceptions, and whether the provider's own
// words say so rather than its status.
func verdict(a *failure, e *Error, own []*Wording) (kind Kind, sure bool) {
	if a.tooLarge(e.Quota) {
		return Invalid, true
	}
	for _, w := range own {
		if k, ok := w.decides(a); ok {
			return k, true
		}
	}
	if k, ok := byWords(a); ok {
		return k, true
	}
	for _, w := range own {
		if w != nil {
			if k, ok := w.Statuses[a.status]; ok {
				return k, true
			}
		}
	}
	return byStatus(a, e), false
}

// byWords decides by the words of the whole world.
func byWords(a *failure) (Kind, bool) {
	for _, w := range a.words { // an empty balance outweighs all else
		if k, _ := strongWord(w); k == QuotaExhausted {
			return QuotaExhausted, true
		}
	}
	if k, ok := byFirstPhrase(a); ok {
		return k, true
	}
	if a.noQuota() != "" {
		return QuotaExhausted, true
	}
	for _, w := range a.words {
		if k, ok := strongWord(w); ok {
			return k, true
		}
	}
	return byPhrase(a)
}

// tooLarge finds the request that is over the whole limit. It comes with the
// status, type and code of a throttle, and would be refused for ever.
func (a *failure) tooLarge(n QuotaNote) bool {
	if a.status == http.StatusRequestEntityTooLarge {
		return true
	}
	return a.status == http.StatusTooManyRequests &&
		(a.hasPhrase("request too large") || n.Limit > 0 && n.Requested > n.Limit)
}

// obeyShouldRetry applies the header by which a provider tells its own
// libraries whether to try again. A quota, a key and a filter keep their kind
// if their own words gave it.
func obeyShouldRetry(a *failure, e *Error, sure bool) {
	switch strings.TrimSpace(a.header.Get("X-Should-Retry")) {
	case "true":
		if !e.Kind.Again() && !sure {
			e.Kind = Server
		}
	case "false":
		if e.Kind.Again() {
			e.Kind = Invalid
		}
	}
}

// addWait adds the wait from the body if no header has one.
func (e *Error) addWait(a *failure) {
	if e.HasRetryAfter || !e.Kind.Again() {
		return
	}
	switch {
	case a.hasWait:
		e.RetryAfter, e.HasRetryAfter = a.wait, true
	case a.google.hasRetry:
		e.RetryAfter, e.HasRetryAfter = a.google.retry, true
	case e.Quota.TryAgain > 0:
		e.RetryAfter, e.HasRetryAfter = e.Quota.TryAgain, true
	case e.Kind == Throttled && !a.google.quota && a.hasPhrase("exceeded your current quota"):
		e.RetryAfter, e.HasRetryAfter, e.Unclear = unclearHold, true, true
	}
}

// ofAccount reports whether a refusal for good concerns the whole account. The quota of a model,
// a deployment or a day does not, and neither does a 403, which may be about one model.
func (a *failure) ofAccount(e *Error) bool {
	switch e.Kind {
	case QuotaExhausted:
		return a.noQuota() == "" && !a.google.daily && e.Quota.Per != "day" && !a.hasPhrase("per day", "daily", "deployment", "temporarily blocked")
	case Unauthorized:
		return a.status != http.StatusForbidden
	}
	return false
}

// exhaust turns a throttle that will not end soon into an exhausted quota.
func (e *Error) exhaust(a *failure) {
	if !e.Kind.Cools() {
		return
	}
	long := e.Quota.Per == "day" || e.Quota.Per == "month"
	soon := e.HasRetryAfter && e.RetryAfter <= MaxHold
	switch {
	case e.HasRetryAfter && e.RetryAfter >= MaxRetryAfter,
		e.Kind == Throttled && a.google.daily, // whose printed delay is that of the minute
		e.Kind == Throttled && long && !soon,
		e.Kind == Throttled && a.google.hasRetry && !soon:
		e.Kind = QuotaExhausted
	}
}
