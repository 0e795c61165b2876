package provider_test

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/headrace/headrace/provider"
)

// Own words are asked in the order in which they are given, prose before codes, and before
// everybody's; statuses when no word decides. The size of a request outweighs them.
func TestOwnWordsFirst(t *testing.T) {
	vendor := &provider.Wording{
		Kinds:    map[string]provider.Kind{"rate_limit_exceeded": provider.Overloaded, "both": provider.Refused},
		Phrases:  []provider.Phrase{{}, {Says: "come back tomorrow", Kind: provider.QuotaExhausted}},
		Statuses: map[int]provider.Kind{http.StatusTeapot: provider.Overloaded, http.StatusTooManyRequests: provider.Server},
	}
	dialect := &provider.Wording{
		Kinds:    map[string]provider.Kind{"both": provider.Timeout, "insufficient_quota": provider.Throttled},
		Statuses: map[int]provider.Kind{http.StatusTeapot: provider.Refused, http.StatusConflict: provider.Overloaded},
	}
	for _, c := range []struct {
		status int
		body   string
		want   provider.Kind
		plain  provider.Kind // without own words
	}{
		{429, `{"error":{"code":"rate_limit_exceeded"}}`, provider.Overloaded, provider.Throttled},
		{429, `{"error":{"code":"rate_limit_exceeded","message":"Come back TOMORROW."}}`, provider.QuotaExhausted, provider.Throttled},
		{429, `{"error":{"code":"insufficient_quota"}}`, provider.Throttled, provider.QuotaExhausted},
		{429, `{"error":{"type":"insufficient_quota","code":"both"}}`, provider.Refused, provider.QuotaExhausted},
		{429, `{"error":{"code":"slow_down"}}`, provider.Throttled, provider.Throttled},
		{429, `{}`, provider.Server, provider.Throttled},
		{418, ``, provider.Overloaded, provider.Invalid},
		{409, ``, provider.Overloaded, provider.Server},
		{500, ``, provider.Server, provider.Server},
		{413, `{"error":{"code":"rate_limit_exceeded"}}`, provider.Invalid, provider.Invalid},
		{200, `{"error":{"code":"rate_limit_exceeded"}}`, provider.Overloaded, provider.Throttled},
		{200, `{"error":{"code":418}}`, provider.Overloaded, provider.Invalid},
	} {
		e := provider.ClassifyIn(c.status, nil, []byte(c.body), vendor, dialect)
		if e == nil || e.Kind != c.want {
			t.Errorf("%d %s: %v, want %v", c.status, c.body, e, c.want)
		}
		if _, also := provider.ReplyIn(c.status, nil, []byte(c.body), vendor, dialect); !reflect.DeepEqual(also, e) {
			t.Errorf("%d %s: a reply is %v", c.status, c.body, also)
		}
		plain := provider.Classify(c.status, nil, []byte(c.body))
		if plain.Kind != c.plain {
			t.Errorf("%d %s: without words %v, want %v", c.status, c.body, plain, c.plain)
		}
		if none := provider.ClassifyIn(c.status, nil, []byte(c.body), nil, &provider.Wording{}); !reflect.DeepEqual(none, plain) {
			t.Errorf("%d %s: with none %+v, want %+v", c.status, c.body, none, plain)
		}
	}
}

// What a vendor's status means is sure, and no header of its library's undoes it.
func TestOwnStatusIsSure(t *testing.T) {
	h := http.Header{"X-Should-Retry": {"true"}}
	own := &provider.Wording{Statuses: map[int]provider.Kind{412: provider.QuotaExhausted}}
	if e := provider.ClassifyIn(412, h, nil, own); e.Kind != provider.QuotaExhausted {
		t.Errorf("%v", e)
	}
}

// The id of a request that failed is read from the body where no header tells it.
func TestRequestIDInTheBody(t *testing.T) {
	body := []byte(`{"type":"error","error":{"type":"billing_error"},"request_id":"req_body"}`)
	for want, h := range map[string]http.Header{"req_body": nil, "req_head": {"Request-Id": {"req_head"}}} {
		if e := provider.Classify(402, h, body); e.RequestID != want {
			t.Errorf("%q, want %q", e.RequestID, want)
		}
	}
}
