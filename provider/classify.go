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

// embeddedStatus returns the status that an error within a 200 names, in digits or by a word; 0 if
// it names none.
func embeddedStatus(f *failure) int {
	if n, err := strconv.Atoi(f.code); err == nil && n >= 400 && n < 600 {
		return n
	}
	for _, w := range f.words {
		if status, ok := weakWords[w]; ok {
			return status
		}
	}
	return 0
}

// judge returns the Error for a failed response that was parsed. own are the words of the vendor and
// the dialect, which are asked first.
func judge(f *failure, body []byte, own []*Wording) *Error {
	e := &Error{
		Status: f.status, Code: f.code, Type: f.kind, Param: f.param, Message: f.message,
		RequestID: cmp.Or(RequestID(f.header), f.id), Body: boundBody(body), Quota: readLimit(f.text),
	}
	if f.google.quota {
		f.google.limit.TryAgain = e.Quota.TryAgain
		e.Quota = f.google.limit
	}
	e.RetryAfter, e.HasRetryAfter, e.OddWait = retryAfter(f.header, time.Now())
	var sure bool
	e.Kind, sure = verdict(f, e, own)
	obeyShouldRetry(f, e, sure)
	e.addWait(f)
	e.Account = f.ofAccount(e)
	e.markExhausted(f)
	if e.Kind == Throttled { // is it about the growth of the rate?
		e.Slow = slices.Contains(f.words, "slow_down") ||
			f.hasPhrase("acceleration limit", "usage increase rate", "sharp increase", "more gradually")
	}
	if e.Kind == Invalid && f.tooLong() {
		e.long = true
		if _, weak := weakWords[strings.ToLower(e.Code)]; e.Code == "" || weak || e.Code == strconv.Itoa(e.Status) { // it says no more than the status
			e.Code = tooLongCode
		}
	}
	if name := f.zeroQuotaHeader(); name != "" && e.Kind == QuotaExhausted { // the message may speak of a rate alone
		e.Message = clip(e.Message+": no quota for this model, its limit is 0 ("+name+")", maxMessage)
	}
	return e
}

// verdict returns the kind before X-Should-Retry and exhausted quotas are applied. It is sure if the
// provider's words gave the kind, rather than its status.
func verdict(f *failure, e *Error, own []*Wording) (kind Kind, sure bool) {
	if f.tooLarge(e.Quota) {
		return Invalid, true
	}
	for _, w := range own {
		if k, ok := w.kindFor(f); ok {
			return k, true
		}
	}
	if k, ok := byCommonWords(f); ok {
		return k, true
	}
	for _, w := range own {
		if w != nil {
			if k, ok := w.Statuses[f.status]; ok {
				return k, true
			}
		}
	}
	return byStatus(f, e), false
}

// byCommonWords returns the kind by the words and phrases that are common to all providers. It
// returns false if none of them is there.
func byCommonWords(f *failure) (Kind, bool) {
	for _, w := range f.words { // an empty balance outweighs all else
		if k, _ := strongWord(w); k == QuotaExhausted {
			return QuotaExhausted, true
		}
	}
	if k, ok := byStrongPhrase(f); ok {
		return k, true
	}
	if f.zeroQuotaHeader() != "" {
		return QuotaExhausted, true
	}
	for _, w := range f.words {
		if k, ok := strongWord(w); ok {
			return k, true
		}
	}
	return byPhrase(f)
}

// tooLarge finds the request that is over the whole limit. It comes with the
// status, type and code of a throttle, and would be refused for ever.
func (f *failure) tooLarge(n QuotaNote) bool {
	if f.status == http.StatusRequestEntityTooLarge {
		return true
	}
	return f.status == http.StatusTooManyRequests &&
		(f.hasPhrase("request too large") || n.Limit > 0 && n.Requested > n.Limit)
}

// obeyShouldRetry applies the header by which a provider tells its own
// libraries whether to try again. A quota, a key and a filter keep their kind
// if their own words gave it.
func obeyShouldRetry(f *failure, e *Error, sure bool) {
	switch strings.TrimSpace(f.header.Get("X-Should-Retry")) {
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

// addWait takes the wait from the body if no header has one. It does so only for kinds that are
// tried again.
func (e *Error) addWait(f *failure) {
	if e.HasRetryAfter || !e.Kind.Again() {
		return
	}
	switch {
	case f.hasWait:
		e.RetryAfter, e.HasRetryAfter = f.wait, true
	case f.google.hasRetry:
		e.RetryAfter, e.HasRetryAfter = f.google.retry, true
	case e.Quota.TryAgain > 0:
		e.RetryAfter, e.HasRetryAfter = e.Quota.TryAgain, true
	case e.Kind == Throttled && !f.google.quota && f.hasPhrase("exceeded your current quota"):
		e.RetryAfter, e.HasRetryAfter, e.Unclear = unclearHold, true, true
	}
}

// ofAccount reports whether a refusal for good concerns the whole account. The quota of a model,
// a deployment or a day does not, and neither does a 403, which may be about one model.
func (f *failure) ofAccount(e *Error) bool {
	switch e.Kind {
	case QuotaExhausted:
		return f.zeroQuotaHeader() == "" && !f.google.daily && e.Quota.Per != "day" && !f.hasPhrase("per day", "daily", "deployment", "temporarily blocked")
	case Unauthorized:
		return f.status != http.StatusForbidden
	}
	return false
}

// markExhausted turns a throttle that will not end soon into an exhausted quota.
func (e *Error) markExhausted(f *failure) {
	if !e.Kind.Cools() {
		return
	}
	long := e.Quota.Per == "day" || e.Quota.Per == "month"
	soon := e.HasRetryAfter && e.RetryAfter <= MaxHold
	switch {
	case e.HasRetryAfter && e.RetryAfter >= MaxRetryAfter,
		e.Kind == Throttled && f.google.daily, // whose printed delay is that of the minute
		e.Kind == Throttled && long && !soon,
		e.Kind == Throttled && f.google.hasRetry && !soon:
		e.Kind = QuotaExhausted
	}
}
