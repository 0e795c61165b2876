package provider

import (
	"bytes"
	"cmp"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/provider/rawjson"
)

// failure is a failed response taken apart, for the rules of classify.go.
type failure struct {
	status int
	header http.Header
	// code, kind and param are as the provider wrote them, message is its prose.
	code, kind, param, message string
	// id is the request's id, if the body has one.
	id string
	// words are all its codes and types, lower case, the most telling first.
	words []string
	// text is the message in lower case, with an upstream's message behind it.
	text string
	// wait is a wait that stands in the body as a number of its own, if hasWait.
	wait    time.Duration
	hasWait bool
	// google holds the parts that only Google's error details have.
	google googleDetails
	// isJSON is false for plain text, HTML and nothing.
	isJSON bool
}

// maxText bounds the prose that is searched for phrases, in bytes: all known
// ones stand in the first few hundred.
const maxText = 8 << 10

// maxRead bounds a JSON error whose members are read, in bytes: each of some twenty names is
// searched for in all of it. No provider's errors have a hundredth of it.
const maxRead = 1 << 20

// read parses a failed response. The error may be an object, a string, the first of an array, or
// flat at the top. Any other body counts as prose.
func read(status int, h http.Header, body []byte) *failure {
	f := &failure{status: status, header: h}
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\xef\xbb\xbf"))
	if rawjson.Valid(body) {
		if f.isJSON = true; len(body) <= maxRead {
			f.readJSON(rawjson.Trim(body))
		}
	} else {
		f.message = prose(body)
	}
	if name, _, _ := strings.Cut(h.Get("X-Amzn-Errortype"), ":"); name != "" {
		f.addWord(name)
		f.kind = cmp.Or(f.kind, name)
	}
	f.boundTexts()
	return f
}

// readJSON takes the members of a JSON body. Those of an error object come first. Those next to it
// fill in what it lacks, and add their words behind its own.
func (f *failure) readJSON(root []byte) {
	if isList(root) {
		root = rawjson.First(root)
	}
	if node := at(root, "error"); isObject(node) {
		f.readNode(node)
	} else {
		f.message = cmp.Or(text(node), text(root))
	}
	// The members next to the error, or the error's own where it is flat.
	f.code = cmp.Or(f.code, codeText(at(root, "code")))
	f.message = cmp.Or(f.message, messageOf(root))
	f.param = cmp.Or(f.param, codeText(at(root, "param")))
	f.id = codeText(at(root, "request_id")) // Anthropic
	f.addWord(codeText(at(root, "code")))
	f.addWord(codeText(at(root, "reason"))) // Novita
	f.addWord(codeText(at(root, "error_type")))
	if kind := codeText(at(root, "type")); kind != "error" { // Anthropic's envelope
		f.addWord(kind)
		f.kind = cmp.Or(f.kind, kind)
	}
	if name := codeText(at(root, "__type")); name != "" { // AWS: "namespace#Name"
		name = name[strings.LastIndexByte(name, '#')+1:]
		f.addWord(name)
		f.kind = cmp.Or(f.kind, name)
	}
}

// readNode reads an error object.
func (f *failure) readNode(node []byte) {
	f.code, f.kind = codeText(at(node, "code")), cmp.Or(codeText(at(node, "type")), codeText(at(node, "status")))
	f.param, f.message = codeText(at(node, "param")), messageOf(node)
	for _, path := range [...]string{
		"metadata.reason", "metadata.limit_source", // OpenRouter
		"code", "innererror.code", "details.error_code", "type", "error_type", "metadata.error_type", "status",
	} {
		f.addWord(codeText(at(node, path)))
	}
	f.readWait(at(node, "metadata"))
	// OpenRouter passes on the prose of its upstream.
	f.text = text(at(node, "metadata.raw"))
	if isList(at(node, "metadata.reasons")) && at(node, "metadata.flagged_input") != nil {
		f.addWord("moderation")
	}
	if details := at(node, "details"); isList(details) { // Anthropic's is an object
		f.google = readGoogle(details)
	}
	for _, reason := range f.google.reasons {
		f.addWord(reason)
	}
}

// readWait reads the wait that OpenRouter puts into the body, and not always into a
// header: in seconds, or as its upstream's header.
func (f *failure) readWait(metadata []byte) {
	f.wait, f.hasWait = waitIn(at(metadata, "retry_after_seconds"))
	for w := rawjson.WalkIn(at(metadata, "headers")); !f.hasWait && w.Next(); {
		if value := w.Skip(); strings.EqualFold(string(w.Name), "Retry-After") {
			f.wait, f.hasWait = waitIn(value)
		}
	}
}

// waitIn reads a number of seconds, which may be written as a text.
func waitIn(v []byte) (time.Duration, bool) {
	x, ok := number(codeText(v))
	return bounded(x), ok && x >= 0
}

func (f *failure) addWord(w string) {
	if w != "" {
		f.words = append(f.words, strings.ToLower(w))
	}
}

// boundTexts clips the message, and joins all prose in small letters for searches by phrase.
func (f *failure) boundTexts() {
	text := f.message
	if f.text != "" {
		text += "\n" + f.text
		f.message += ": " + f.text
	}
	f.text = strings.ToLower(text[:min(len(text), maxText)])
	f.message = clip(f.message, maxMessage)
}

// hasPhrase reports whether the prose contains any of the phrases.
func (f *failure) hasPhrase(phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(f.text, p) {
			return true
		}
	}
	return false
}

// messageOf finds the prose of an error object: providers call it message,
// detail, or Message; FastAPI's detail is a list, DeepInfra's an object with an error.
func messageOf(node []byte) string {
	for _, path := range [...]string{"message", "Message", "detail", "detail.0.msg", "msg", "error_description"} {
		v := at(node, path)
		if prose := cmp.Or(text(v), text(rawjson.First(v)), text(at(v, "message")), text(at(v, "error"))); prose != "" {
			return prose
		}
	}
	return ""
}

// at returns the value at a path of names, in which 0 is the first of a list; nil if it is not there.
func at(value []byte, path string) []byte {
	for name := range strings.SplitSeq(path, ".") {
		if name == "0" {
			value = rawjson.First(value)
		} else {
			value = rawjson.Lookup(value, name)
		}
	}
	return value
}

// text returns the contents of a string; "" for any other value.
func text(value []byte) string {
	if !rawjson.IsString(value) {
		return ""
	}
	return string(rawjson.Unquote(value))
}

func isList(value []byte) bool { return len(value) > 0 && value[0] == '[' }

// codeText returns a code or type as text, clipped to maxWord. Providers send it as a string or as
// a number.
func codeText(v []byte) string {
	if len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
		return clip(string(v), maxWord)
	}
	return clip(text(v), maxWord)
}

// prose returns the message for a body that is not JSON: the title of an HTML page, or else the
// beginning of the body.
func prose(body []byte) string {
	if len(body) == 0 || body[0] != '<' {
		return string(body[:min(len(body), maxText)])
	}
	head := body[:min(len(body), maxText)]
	lower := bytes.ToLower(head)
	from := bytes.Index(lower, []byte("<title>"))
	to := bytes.Index(lower, []byte("</title>"))
	// ToLower may change a length outside ASCII: then the title is not cut out.
	if from < 0 || to < from || len(lower) != len(head) {
		return "an HTML page"
	}
	return "an HTML page: " + string(bytes.TrimSpace(head[from+len("<title>"):to]))
}

// The forms in which messages describe the limit that was hit:
//
//	Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used
//	29937, Requested 385. Please try again in 644ms.
//	Limit: 3 / min. Please try again in 20s.
//	…would exceed your organization's rate limit of 40,000 input tokens per minute.
//	…have exceeded token rate limit… Please retry after 6 seconds.
var (
	quotaLimit     = regexp.MustCompile(`\blimit(?: of|:)? ([0-9][0-9,]*)`)
	quotaUsed      = regexp.MustCompile(`\b(?:used|current):? ([0-9][0-9,]*)`)
	quotaRequested = regexp.MustCompile(`\brequested:? ([0-9][0-9,]*)`)
	quotaOn        = regexp.MustCompile(`\b(input |output |prompt )?(token|request)s?(?:_usage_based)? per[ -]`)
	quotaPer       = regexp.MustCompile(`(?:\bper[ -]?| / ?|[0-9]/)(sec|min|hour|day|month)|\b(daily|monthly)\b`)
	quotaAgain     = regexp.MustCompile(`\b(?:try again|retry|wait) (?:in|after|for) (?:([0-9][0-9hms.]*[hms])\b|([0-9]+(?:\.[0-9]+)?) ?(second|minute|hour|day))`)
)

var periods = map[string]string{
	"sec": "second", "min": "min", "hour": "hour", "day": "day", "daily": "day", "month": "month", "monthly": "month",
}

var units = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
}

// readLimit reads the figures of a limit from a message in small letters.
func readLimit(text string) QuotaNote {
	var note QuotaNote
	note.Limit = limitNumber(quotaLimit, text)
	note.Used = limitNumber(quotaUsed, text)
	note.Requested = limitNumber(quotaRequested, text)
	if match := quotaPer.FindStringSubmatch(text); match != nil {
		note.Per = periods[match[1]+match[2]]
	}
	if match := quotaOn.FindStringSubmatch(text); match != nil {
		note.On = dimensionOf(match[1], match[2])
	}
	note.TryAgain = limitWait(text)
	return note
}

// dimensionOf returns the dimension of a limit that a message names: requests, or tokens of the
// given side ("" for both sides).
func dimensionOf(side, unit string) Dimension {
	switch {
	case unit == "request":
		return Requests
	case side == "output ":
		return OutputTokens
	case side != "":
		return InputTokens
	}
	return Tokens
}

// limitNumber returns the number that an expression finds in a message, 0 if it finds none.
func limitNumber(re *regexp.Regexp, text string) float64 {
	match := re.FindStringSubmatch(text)
	if match == nil {
		return 0
	}
	value, _ := quantity(strings.ReplaceAll(match[1], ",", ""))
	return value
}

// limitWait reads "try again in 1m2.5s" or "retry after 6 seconds".
func limitWait(text string) time.Duration {
	match := quotaAgain.FindStringSubmatch(text)
	if match == nil {
		return 0
	}
	if match[1] != "" {
		wait, err := time.ParseDuration(match[1])
		if err != nil {
			return 0
		}
		return min(max(wait, 0), MaxRetryAfter)
	}
	number, err := strconv.ParseFloat(match[2], 64)
	if err != nil {
		return 0
	}
	return bounded(number * units[match[3]].Seconds())
}

// googleDetails holds the contents of Google's error details.
type googleDetails struct {
	retry    time.Duration
	hasRetry bool
	// quota: a QuotaFailure names quotas; daily: one of them counts by the day.
	quota, daily bool
	limit        QuotaNote
	reasons      []string
}

// maxDetails bounds how many details and violations are read.
const maxDetails = 32

// readGoogle reads Google's error details: the wait, the quotas, and the reasons.
func readGoogle(details []byte) googleDetails {
	var g googleDetails
	seen := 0
	for w := rawjson.WalkIn(details); w.Next() && seen < maxDetails; seen++ {
		detail := w.Skip()
		switch kind := text(at(detail, "@type")); {
		case strings.HasSuffix(kind, "google.rpc.RetryInfo"):
			g.retry, g.hasRetry = googleDelay(text(at(detail, "retryDelay")))
		case strings.HasSuffix(kind, "google.rpc.QuotaFailure"):
			g.readQuota(at(detail, "violations"))
		case strings.HasSuffix(kind, "google.rpc.ErrorInfo"):
			g.reasons = append(g.reasons, codeText(at(detail, "reason")))
		}
	}
	return g
}

// readQuota reads the violations that name a quota. The limit of the first one is kept, or that of
// the first one by the day, if there is one.
func (g *googleDetails) readQuota(violations []byte) {
	seen := 0
	for w := rawjson.WalkIn(violations); w.Next() && seen < maxDetails; seen++ {
		violation := w.Skip()
		id := strings.ToLower(text(at(violation, "quotaId")))
		if id == "" {
			continue
		}
		daily := strings.Contains(id, "perday") || strings.Contains(id, "daily")
		if !g.quota || (daily && !g.daily) {
			g.limit = googleLimit(violation, daily)
		}
		g.quota, g.daily = true, g.daily || daily
	}
}

// googleLimit returns the limit of one of Google's quota violations, by the day or by the minute.
func googleLimit(violation []byte, daily bool) QuotaNote {
	note := QuotaNote{Per: "min", On: Requests}
	note.Limit, _ = quantity(codeText(at(violation, "quotaValue")))
	if daily {
		note.Per = "day"
	}
	if strings.Contains(text(at(violation, "quotaMetric")), "token") {
		note.On = InputTokens
	}
	return note
}

func googleDelay(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || len(s) > maxWord {
		return 0, false
	}
	return min(d, MaxRetryAfter), true
}
