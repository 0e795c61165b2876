package provider_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/providertest"
)

// Classify understands every recording that came whole and needs no dialect's own words,
// without a client.
func TestClassifyRecordings(t *testing.T) {
	for _, c := range providertest.Cases() {
		if !c.Whole || c.Dialect != "" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			e := provider.Classify(c.Status, c.Header, c.Body)
			switch {
			case c.Fine && e != nil:
				t.Errorf("a good answer gave %v", e)
			case !c.Fine && e == nil:
				t.Errorf("no error, want kind %v", c.Kind)
			case !c.Fine:
				c.Check(t, e)
			}
			if reply, _ := provider.ReplyOf(c.Status, c.Header, c.Body); c.Fine {
				c.CheckReply(t, reply)
			}
			if c.Limits >= 0 && len(provider.RateLimits(c.Header, time.Now())) != c.Limits {
				t.Errorf("limits %+v, want %d", provider.RateLimits(c.Header, time.Now()), c.Limits)
			}
		})
	}
}

// Every kind but those that no answer has occurs among the recordings.
func TestRecordingsCoverTheKinds(t *testing.T) {
	seen := map[provider.Kind]bool{
		provider.Canceled: true, provider.Truncated: true, provider.Misconfigured: true, // never an answer's
	}
	for _, c := range providertest.Cases() {
		if !c.Fine {
			seen[c.Kind] = true
		}
	}
	for k := provider.Unknown; k <= provider.Misconfigured; k++ {
		if !seen[k] {
			t.Errorf("no recording is of kind %v", k)
		}
	}
}

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

// A status without any word is classified by the status table.
func TestClassifyByStatusAlone(t *testing.T) {
	for status, want := range map[int]provider.Kind{
		100: provider.Unknown, 302: provider.Unknown, 400: provider.Invalid, 401: provider.Unauthorized,
		402: provider.QuotaExhausted, 404: provider.ModelNotFound, 405: provider.Invalid,
		407: provider.Misconfigured, 408: provider.Timeout, 409: provider.Server, 410: provider.ModelNotFound,
		413: provider.Invalid, 415: provider.Invalid, 422: provider.Invalid, 425: provider.Server,
		429: provider.Throttled, 499: provider.Server, 500: provider.Server, 501: provider.Invalid,
		502: provider.Server, 503: provider.Overloaded, 504: provider.Server, 524: provider.Server,
		529: provider.Overloaded, 0: provider.Unknown, 999: provider.Unknown, -1: provider.Unknown,
	} {
		for _, body := range []string{"", "{}", "[]", "null", `""`, "text", "<html>", `{"error":null}`, `{"error":{}}`} {
			if e := provider.Classify(status, nil, []byte(body)); e == nil || e.Kind != want {
				t.Errorf("%d %q: got %v, want %v", status, body, e, want)
			}
		}
	}
}

// A 403 in JSON is the provider's, and refuses the key. One in another form is that of a
// firewall or proxy on the way, whatever its status means there.
func TestForbiddenByWhom(t *testing.T) {
	for body, want := range map[string]provider.Kind{
		`{"error":{"message":"no access to this model"}}`: provider.Unauthorized,
		`{}`:                           provider.Unauthorized,
		`"forbidden"`:                  provider.Unauthorized,
		"":                             provider.TransportFault,
		"Forbidden":                    provider.TransportFault,
		"<html><title>Blocked</title>": provider.TransportFault,
		`{"error":{"message":"cut o`:   provider.TransportFault,
	} {
		if e := provider.Classify(403, nil, []byte(body)); e.Kind != want {
			t.Errorf("%s: %v, want %v", body, e, want)
		}
	}
	h := http.Header{"X-Amzn-Errortype": {"AccessDeniedException:"}}
	if e := provider.Classify(403, h, nil); e.Kind != provider.Unauthorized {
		t.Errorf("its header names the provider: %v", e)
	}
}

// An error that resembles a known one, and means something else, keeps its kind.
func TestNeighboursKeepTheirKind(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   provider.Kind
	}{
		{400, `{"code":"Client specified an invalid argument","error":"Argument not supported on this model: presencePenalty"}`, provider.Invalid},
		{429, `{"error":"Incorrect API key provided: na***ys."}`, provider.Throttled},
		{500, `{"error":"Incorrect API key provided: na***ys."}`, provider.Server},
		{403, `{"code":"The caller does not have permission to execute the specified operation","error":"Your team has no access to this model."}`, provider.Unauthorized},
		{403, `{"error":{"message":"max_tokens must be less than the context length of the model"}}`, provider.Unauthorized},
		{400, `{"error":{"message":"max_tokens must be less than the context length of the model"}}`, provider.Invalid},
		{403, `{"error":{"message":"The long context window is not part of your plan."}}`, provider.Unauthorized},
		{500, `{"error":{"message":"Input token count must be less than the context length"}}`, provider.Server},
		{403, `{"error":{"message":"Image input is not part of your plan."}}`, provider.Unauthorized},
		{400, `{"error":{"message":"Image input is not supported."}}`, provider.Invalid},
		{403, `{"code":403,"reason":"MODEL_ACCESS_DENIED","message":"no access","metadata":{}}`, provider.Unauthorized},
		{400, `{"code":400,"reason":"INVALID_REQUEST_BODY","message":"the prompt says: not enough balance","metadata":{}}`, provider.Invalid},
		{400, `{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API.","type":"invalid_request_error","code":"invalid_request_error"}}`, provider.Invalid},
		{400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","code":"invalid_request_error"}}`, provider.ModelNotFound},
		{403, `{"error":{"message":"Provider returned error","code":403,"metadata":{"raw":"no access","provider_name":"xAI"}}}`, provider.Unauthorized},
		{400, `{"error":{"message":"not supported","code":"model_not_supported"}}`, provider.Invalid},
	} {
		e := provider.Classify(c.status, nil, []byte(c.body))
		if e.Kind != c.want || e.TooLong() {
			t.Errorf("%d %s: %v, too long: %v, want %v", c.status, c.body, e.Kind, e.TooLong(), c.want)
		}
	}
}

// A request that is too long is called so, whatever status and words say it.
func TestTooLong(t *testing.T) {
	for body, status := range map[string]int{
		`{"error":{"message":"Input token count + max_tokens parameter must be less than the context length of the model being queried."}}`: 403,
		"{\"error\":{\"message\":\"`inputs` tokens + `max_new_tokens` must be <= 4097.\"}}":                                                 422,
		`{"error":{"code":"context_length_exceeded"}}`:                                                                                      400,
		`{"code":"invalid-argument","error":"This model's maximum prompt length is 131072 but the request contains 150000 tokens."}`:        400,
		`{"error":{"code":"1261","message":"Prompt exceeds max length"}}`:                                                                   400,
		`<html><title>413</title>`: 413,
	} {
		if e := provider.Classify(status, nil, []byte(body)); e.Kind != provider.Invalid || !e.TooLong() {
			t.Errorf("%d %s: %v, too long: %v", status, body, e.Kind, e.TooLong())
		}
	}
}

// The codes that mean an empty account are exhausted whatever the status, and
// wherever the code stands.
func TestExhaustedWordsOutweighAll(t *testing.T) {
	for _, word := range []string{
		"insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded",
		"project_spend_limit_exceeded", "organization_usage_limit_exceeded", "billing_hard_limit_reached",
		"enforced_spend_limit_reached",
	} {
		for _, body := range []string{
			`{"error":{"code":%q,"message":"m"}}`, `{"error":{"type":%q,"code":"rate_limit_exceeded"}}`,
			`[{"error":{"type":%q}}]`, `{"code":%q,"message":"m"}`, `{"type":"error","error":{"type":%q}}`,
		} {
			body = fmt.Sprintf(body, word)
			for _, status := range []int{400, 402, 403, 429, 503} {
				e := provider.Classify(status, http.Header{"Retry-After": {"5"}, "X-Should-Retry": {"true"}}, []byte(body))
				if e.Kind != provider.QuotaExhausted {
					t.Errorf("%d %s: %v, want quota_exhausted", status, body, e.Kind)
				}
			}
		}
	}
}

// x-should-retry turns the status around, but not an empty account, a refused
// key that is named, or a filter.
func TestShouldRetry(t *testing.T) {
	for _, c := range []struct {
		status       int
		should, body string
		want         provider.Kind
	}{
		{400, "true", ``, provider.Server},
		{500, "false", ``, provider.Invalid},
		{429, "false", `{"error":{"type":"rate_limit_error"}}`, provider.Invalid},
		{529, "false", ``, provider.Invalid},
		{429, "true", ``, provider.Throttled},
		{401, "true", `{"error":{"code":"invalid_api_key"}}`, provider.Unauthorized},
		{401, "false", ``, provider.Unauthorized},
		{400, "true", `{"error":{"code":"content_filter"}}`, provider.Refused},
		{429, "false", `{"error":{"code":"insufficient_quota"}}`, provider.QuotaExhausted},
		{500, "maybe", ``, provider.Server},
	} {
		e := provider.Classify(c.status, http.Header{"X-Should-Retry": {c.should}}, []byte(c.body))
		if e.Kind != c.want {
			t.Errorf("%d %s %s: %v, want %v", c.status, c.should, c.body, e.Kind, c.want)
		}
	}
}

// The wall of a quota: a daily one is exhausted unless it is over in minutes.
func TestDailyQuota(t *testing.T) {
	const daily = `{"error":{"message":"on tokens per day (TPD): Limit 1000, Used 999, Requested 10."}}`
	for header, want := range map[string]provider.Kind{
		"": provider.QuotaExhausted, "300": provider.Throttled, "301": provider.QuotaExhausted,
	} {
		h := http.Header{}
		if header != "" {
			h.Set("Retry-After", header)
		}
		if e := provider.Classify(429, h, []byte(daily)); e.Kind != want {
			t.Errorf("Retry-After %q: %v, want %v", header, e.Kind, want)
		}
	}
	if e := provider.Classify(429, http.Header{"Retry-After": {"3600"}}, nil); e.Kind != provider.Throttled {
		t.Errorf("an hour without a daily quota: %v, want throttled", e.Kind)
	}
}

// A request over the whole limit is permanent, whether the phrase says so or the
// numbers do; one that only has to wait is not.
func TestRequestTooLarge(t *testing.T) {
	for message, want := range map[string]provider.Kind{
		"Request too large for gpt-4o.":                             provider.Invalid,
		"on tokens per min (TPM): Limit 30000, Requested 30601.":    provider.Invalid,
		"on tokens per min: Limit 30000, Used 29000, Requested 900": provider.Throttled,
		"on tokens per min: Limit 30000, Used 0, Requested 30000":   provider.Throttled,
	} {
		body := fmt.Sprintf(`{"error":{"message":%q,"type":"tokens","code":"rate_limit_exceeded"}}`, message)
		if e := provider.Classify(429, nil, []byte(body)); e.Kind != want {
			t.Errorf("%s: %v, want %v", message, e.Kind, want)
		}
	}
}

// A Go error is classified by what is inside it, however deep.
func TestClassifyErr(t *testing.T) {
	post := func(err error) error { return &url.Error{Op: "Post", URL: "http://host/v1", Err: err} }
	own := &provider.Error{Kind: provider.Refused, Message: "m"}
	_, parse := url.Parse("http://a b") //nolint:staticcheck // the error is what is wanted
	syntax := json.Unmarshal([]byte("<"), new(int))
	_, scheme := new(http.Client).Get("gopher://host")
	for _, c := range []struct {
		err  error
		want provider.Kind
	}{
		{errors.New("odd"), provider.Unknown},
		{context.Canceled, provider.Canceled},
		{post(context.Canceled), provider.Canceled},
		{post(context.DeadlineExceeded), provider.Timeout},
		{fmt.Errorf("call: %w", own), provider.Refused},
		{fmt.Errorf("call: %w", provider.Throttled), provider.Throttled},
		{provider.Permanent(errors.New("no")), provider.Invalid},
		{provider.RetryAfter(time.Second, errors.New("slow")), provider.Throttled},
		{post(&net.DNSError{Err: "no such host", IsNotFound: true}), provider.TransportFault},
		{post(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), provider.TransportFault},
		{post(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), provider.TransportFault},
		{syscall.EPIPE, provider.TransportFault},
		{io.EOF, provider.TransportFault},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), provider.TransportFault},
		{post(errors.New("net/http: TLS handshake timeout")), provider.TransportFault},
		{post(errors.New("http2: server sent GOAWAY")), provider.TransportFault},
		{errors.New("stream error: stream ID 1; INTERNAL_ERROR"), provider.TransportFault},
		{syntax, provider.TransportFault},
		{post(x509.UnknownAuthorityError{}), provider.Misconfigured},
		{post(x509.HostnameError{Certificate: new(x509.Certificate)}), provider.Misconfigured},
		{post(x509.CertificateInvalidError{Reason: x509.Expired}), provider.Misconfigured},
		{post(&tls.CertificateVerificationError{Err: errors.New("x")}), provider.Misconfigured},
		{post(tls.RecordHeaderError{}), provider.Misconfigured},
		{post(http.ErrSchemeMismatch), provider.Misconfigured},
		{post(&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}), provider.Misconfigured},
		{post(&net.OpError{Op: "remote error", Err: errors.New("tls: internal error")}), provider.TransportFault},
		{post(errors.New(`net/http: invalid header field value for "Authorization"`)), provider.Misconfigured},
		{scheme, provider.Misconfigured},
		{parse, provider.Misconfigured},
	} {
		if e := provider.ClassifyErr(c.err); e.Kind != c.want {
			t.Errorf("%v: %v, want %v", c.err, e.Kind, c.want)
		}
	}
	if provider.ClassifyErr(nil) != nil {
		t.Error("no error was classified")
	}
	if e := provider.ClassifyErr(fmt.Errorf("call: %w", own)); e != own {
		t.Error("an Error inside was not returned as it is")
	}
}

// errors.Is asks for the kind and for the cause, and the texts follow the form
// "whose: kind: status code: message".
func TestErrorTextAndChain(t *testing.T) {
	cause := errors.New("boom")
	for _, c := range []struct {
		err  error
		text string
	}{
		{&provider.Error{Kind: provider.Throttled, Provider: "openai", Status: 429, Code: "rate_limit_exceeded", Message: "Too fast"}, "openai: throttled: 429 rate_limit_exceeded: Too fast"},
		{&provider.Error{Kind: provider.Throttled, Status: 429, Code: "429", Type: "RESOURCE_EXHAUSTED"}, "throttled: 429 RESOURCE_EXHAUSTED"},
		{&provider.Error{Kind: provider.Server, Status: 500}, "server: 500"},
		{&provider.Error{Kind: provider.TransportFault, Provider: "openai", Err: cause}, "openai: transport: boom"},
		{provider.Permanent(cause), "invalid: boom"},
	} {
		if c.err.Error() != c.text {
			t.Errorf("%q, want %q", c.err, c.text)
		}
	}
	err := fmt.Errorf("item 7: %w", provider.Permanent(cause))
	if !errors.Is(err, provider.Invalid) || !errors.Is(err, cause) || errors.Is(err, provider.Server) {
		t.Errorf("%v is not invalid, its cause, and nothing else", err)
	}
	if provider.Permanent(nil) != nil || provider.RetryAfter(time.Second, nil) != nil {
		t.Error("no error was made into one")
	}
}

// RetryAfter's wait has the bounds of a header's: what no server can mean is not named.
func TestRetryAfterIsBounded(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 0: 0, time.Minute: time.Minute, provider.MaxRetryAfter: provider.MaxRetryAfter, 1000 * time.Hour: -1,
	} {
		e := provider.ClassifyErr(provider.RetryAfter(d, io.EOF))
		named := want >= 0
		if e.RetryAfter != max(0, want) || e.HasRetryAfter != named || (e.OddWait == "") != named || e.Kind != provider.Throttled || !errors.Is(e, io.EOF) {
			t.Errorf("%v became %v, %v, odd %q", d, e.RetryAfter, e.HasRetryAfter, e.OddWait)
		}
	}
}

// A message of any length or content is one bounded, printable line.
func TestMessagesAreBoundedLines(t *testing.T) {
	long := `{"error":{"message":"a\nb\u0000\u001b[31mc` + strings.Repeat("é", 5000) + `","code":"` + strings.Repeat("c", 5000) + `"}}`
	e := provider.Classify(500, nil, []byte(long))
	if len(e.Message) > 1024 || !strings.HasPrefix(e.Message, "a b [31mcéé") {
		t.Errorf("message of %d bytes: %.40q", len(e.Message), e.Message)
	}
	if len(e.Code) > 256 {
		t.Errorf("a code of %d bytes", len(e.Code))
	}
	e = provider.Classify(500, nil, []byte(strings.Repeat("x", 1<<20)))
	if len(e.Body) != provider.MaxErrorBody || len(e.Message) > 1024 {
		t.Errorf("%d bytes of body, %d of message", len(e.Body), len(e.Message))
	}
}

// The message is what the server says, wherever it says it; a page is named by
// its title.
func TestMessages(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"m"}}`: "m", `{"error":"m"}`: "m", `"m"`: "m", `{"message":"m"}`: "m", `{"Message":"m"}`: "m",
		`{"detail":"m"}`: "m", `{"detail":[{"msg":"m"}]}`: "m", `[{"error":{"message":"m"}}]`: "m",
		`{"error":{"message":["m","n"]}}`: "m", `{"error":{"message":"m","metadata":{"raw":"n"}}}`: "m: n",
		"404 page not found\n": "404 page not found", `{"error":{"message":"cut`: `{"error":{"message":"cut`,
		"<html><head><TITLE>502 Bad\nGateway</TITLE>": "an HTML page: 502 Bad Gateway", "<p>": "an HTML page", "": "",
	} {
		if e := provider.Classify(502, nil, []byte(body)); e.Message != want {
			t.Errorf("%s: %q, want %q", body, e.Message, want)
		}
	}
}

// JSON nested a million deep does not exhaust the stack.
func TestDeepJSONIsHarmless(t *testing.T) {
	deep := []byte(strings.Repeat(`[`, 1<<20) + strings.Repeat(`]`, 1<<20))
	for _, status := range []int{200, 500} {
		if e := provider.Classify(status, nil, deep); e == nil {
			t.Errorf("status %d: no error", status)
		}
	}
	deep = []byte(strings.Repeat(`{"error":`, 1<<18) + "1" + strings.Repeat(`}`, 1<<18))
	if e := provider.ClassifyOK(deep); e == nil {
		t.Error("no error")
	}
	provider.ReplyOf(200, nil, deep)
}

// A good answer is nil as a pointer and its parts are not mistaken for errors.
func TestGoodAnswers(t *testing.T) {
	for _, body := range []string{
		`{"choices":[{"message":{"content":"{\"error\":1}"}}]}`,
		`{"error":null,"output":[{}],"status":"completed"}`,
		`{"error":null,"choices":[{}]}`,
		`{"data":[{"embedding":[1]}],"error":null}`,
		`{"type":"message","content":[{"type":"text","text":"error"}],"stop_reason":"end_turn"}`,
		" {\"choices\":[{}]}\r\n",
	} {
		if e := provider.ClassifyOK([]byte(body)); e != nil {
			t.Errorf("%s: %v", body, e)
		}
	}
	for body, want := range map[string]provider.Kind{
		`{"error":{"code":"rate_limit_exceeded"},"output":[{}],"status":"failed"}`: provider.Throttled,
		`{"error":{"type":"invalid_request_error"}}`:                               provider.Invalid,
		`{"error":{"type":"api_error","message":"x"},"type":"error"}`:              provider.Server,
		`{"object":"error","message":"m","code":400}`:                              provider.Invalid,
		`{"error":{"code":"402"}}`:                                                 provider.QuotaExhausted,
		`[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`:                   provider.Throttled,
		`"text"`: provider.Unknown, `5`: provider.Unknown,
		`null`: provider.EmptyAnswer, `{"error":null,"choices":[]}`: provider.EmptyAnswer, `{"error":null,"output":[],"status":"completed"}`: provider.EmptyAnswer,
	} {
		if e := provider.ClassifyOK([]byte(body)); e == nil || e.Kind != want || e.Status != 200 {
			t.Errorf("%s: %+v, want %v", body, e, want)
		}
	}
}
