package converse_test

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/converse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a model's own error means depends on the status that it gave to Bedrock, and a
// vendor's own words go before all that.
func TestModelError(t *testing.T) {
	h := http.Header{"X-Amzn-Errortype": {"ModelErrorException"}}
	for body, want := range map[string]provider.Kind{
		`{"message":"m"}`:                              provider.Server,
		`{"message":"m","originalStatusCode":503}`:     provider.Server,
		`{"message":"m","originalStatusCode":400}`:     provider.Invalid,
		`{"message":"m","originalStatusCode":408}`:     provider.Timeout,
		`{"message":"m","originalStatusCode":429}`:     provider.Throttled,
		`{"message":"m","originalStatusCode":"400"}`:   provider.Server,
		`{"message":"m","originalStatusCode":400`:      provider.Server,
		`{"message":"m","originalStatusCode":1e999999`: provider.Server,
	} {
		if _, e := (converse.Dialect{}).Answer(http.StatusFailedDependency, h, []byte(body), nil); e == nil || e.Kind != want {
			t.Errorf("%s: %v, want %v", body, e, want)
		}
	}
	own := &provider.Wording{Kinds: map[string]provider.Kind{"servicequotaexceededexception": provider.QuotaExhausted}}
	h.Set("X-Amzn-Errortype", "ServiceQuotaExceededException")
	if _, e := (converse.Dialect{}).Answer(http.StatusBadRequest, h, nil, own); e == nil || e.Kind != provider.QuotaExhausted || e.Unclear {
		t.Errorf("%+v", e)
	}
}

// An agreement that is being made takes a quarter of an hour, unless a header says how long;
// a word that is only the beginning of a quota's says nothing of one.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		status     int
		word, wait string
		want       time.Duration
		unclear    bool
	}{
		{http.StatusForbidden, "MPAgreementBeingCreated", "", 15 * time.Minute, false},
		{http.StatusForbidden, "MPAgreementBeingCreated", "20", 20 * time.Second, false},
		{http.StatusBadRequest, "ServiceQuotaExceededException", "", time.Minute, true},
		{http.StatusBadRequest, "ServiceQuotaExceeded", "20", 20 * time.Second, true},
		{http.StatusTooManyRequests, "Service", "", 0, false},
		{http.StatusTooManyRequests, "", "", 0, false},
	} {
		h := http.Header{"X-Amzn-Errortype": {c.word}}
		if c.wait != "" {
			h.Set("Retry-After", c.wait)
		}
		_, e := converse.Dialect{}.Answer(c.status, h, []byte(`{"message":"m"}`), nil)
		if e == nil || e.RetryAfter != c.want || e.HasRetryAfter != (c.want > 0) || e.Unclear != c.unclear {
			t.Errorf("%+v: %+v", c, e)
		}
	}
}

// What a model has read is in a header; of Titan it is in the body, too. What is no count is none.
func TestUsageOfEmbeddings(t *testing.T) {
	const vectors, titan = `{"embeddings":{"float":[[1]]}}`, `{"embedding":[1],"inputTextTokenCount":7}`
	for _, c := range []struct {
		header, body string
		input        int64
		reported     bool
	}{
		{"5", vectors, 5, true},
		{"5", titan, 5, true},
		{"", titan, 7, true},
		{"", vectors, 0, false},
		{"-1", vectors, 0, false},
		{"many", vectors, 0, false},
		{"", `{"embedding":[1],"inputTextTokenCount":-7}`, 0, false},
	} {
		h := http.Header{}
		if c.header != "" {
			h.Set("X-Amzn-Bedrock-Input-Token-Count", c.header)
		}
		reply, err := converse.Dialect{}.Answer(200, h, []byte(c.body), nil)
		if err != nil || reply.Usage != (provider.Usage{InputTokens: c.input}) || reply.HasUsage != c.reported {
			t.Errorf("%+v: %+v, %v, %v", c, reply.Usage, reply.HasUsage, err)
		}
	}
}
