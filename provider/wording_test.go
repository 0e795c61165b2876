package provider

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"

	"github.com/headrace/headrace/provider/rawjson"
)

// Own words are asked in the order in which they are given, prose before codes, and before
// everybody's; statuses when no word decides. The size of a request outweighs them.
func TestOwnWordsFirst(t *testing.T) {
	vendor := &Wording{
		Kinds:    map[string]Kind{"rate_limit_exceeded": Overloaded, "both": Refused},
		Phrases:  []Phrase{{}, {Says: "come back tomorrow", Kind: QuotaExhausted}},
		Statuses: map[int]Kind{http.StatusTeapot: Overloaded, http.StatusTooManyRequests: Server},
	}
	dialect := &Wording{
		Kinds:    map[string]Kind{"both": Timeout, "insufficient_quota": Throttled},
		Statuses: map[int]Kind{http.StatusTeapot: Refused, http.StatusConflict: Overloaded},
	}
	for _, c := range []struct {
		status int
		body   string
		want   Kind
		plain  Kind // without own words
	}{
		{429, `{"error":{"code":"rate_limit_exceeded"}}`, Overloaded, Throttled},
		{429, `{"error":{"code":"rate_limit_exceeded","message":"Come back TOMORROW."}}`, QuotaExhausted, Throttled},
		{429, `{"error":{"code":"insufficient_quota"}}`, Throttled, QuotaExhausted},
		{429, `{"error":{"type":"insufficient_quota","code":"both"}}`, Refused, QuotaExhausted},
		{429, `{"error":{"code":"slow_down"}}`, Throttled, Throttled},
		{429, `{}`, Server, Throttled},
		{418, ``, Overloaded, Invalid},
		{409, ``, Overloaded, Server},
		{500, ``, Server, Server},
		{413, `{"error":{"code":"rate_limit_exceeded"}}`, Invalid, Invalid},
		{200, `{"error":{"code":"rate_limit_exceeded"}}`, Overloaded, Throttled},
		{200, `{"error":{"code":418}}`, Overloaded, Invalid},
	} {
		e := ClassifyIn(c.status, nil, []byte(c.body), vendor, dialect)
		if e == nil || e.Kind != c.want {
			t.Errorf("%d %s: %v, want %v", c.status, c.body, e, c.want)
		}
		if _, also := ReplyIn(c.status, nil, []byte(c.body), vendor, dialect); !reflect.DeepEqual(also, e) {
			t.Errorf("%d %s: a reply is %v", c.status, c.body, also)
		}
		plain := Classify(c.status, nil, []byte(c.body))
		if plain.Kind != c.plain {
			t.Errorf("%d %s: without words %v, want %v", c.status, c.body, plain, c.plain)
		}
		if none := ClassifyIn(c.status, nil, []byte(c.body), nil, &Wording{}); !reflect.DeepEqual(none, plain) {
			t.Errorf("%d %s: with none %+v, want %+v", c.status, c.body, none, plain)
		}
	}
}

// What a vendor's status means is sure, and no header of its library's undoes it.
func TestOwnStatusIsSure(t *testing.T) {
	h := http.Header{"X-Should-Retry": {"true"}}
	own := &Wording{Statuses: map[int]Kind{412: QuotaExhausted}}
	if e := ClassifyIn(412, h, nil, own); e.Kind != QuotaExhausted {
		t.Errorf("%v", e)
	}
}

// The id of a request that failed is read from the body where no header tells it.
func TestRequestIDInTheBody(t *testing.T) {
	body := []byte(`{"type":"error","error":{"type":"billing_error"},"request_id":"req_body"}`)
	for want, h := range map[string]http.Header{"req_body": nil, "req_head": {"Request-Id": {"req_head"}}} {
		if e := Classify(402, h, body); e.RequestID != want {
			t.Errorf("%q, want %q", e.RequestID, want)
		}
	}
}

// A segment spells the name, without any character that has a meaning in a path, a host or a query.
func TestSegment(t *testing.T) {
	for model, want := range map[string]string{
		"": "", "gpt-5_mini.x~1": "gpt-5_mini.x~1", "a/b": "a%2Fb", "a b+c": "a%20b%2Bc", ".": "%2E", "..": "%2E%2E", "...": "...",
		"v1:0": "v1%3A0", "%": "%25", "é\x00": "%C3%A9%00",
	} {
		if got := Segment(model); got != want {
			t.Errorf("%q: %q, want %q", model, got, want)
		}
		if back, err := url.PathUnescape(Segment(model)); back != model || err != nil {
			t.Errorf("%q: back %q, %v", model, back, err)
		}
	}
}

// An object is one that is JSON, whatever white space of JSON's stands around it.
func TestObjectIn(t *testing.T) {
	for body, want := range map[string]string{
		" {\"a\":1}\n": `{"a":1}`, `{}`: `{}`, `[{}]`: "", `{"a":1`: "", `{"a":1}x`: "", "": "", `"x"`: "", "\u00a0{}": "",
	} {
		if got := string(ObjectIn([]byte(body))); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

// What was found makes a reply; a header's id goes before the body's.
func TestFoundReply(t *testing.T) {
	body := []byte(`{}`)
	found := Found{Usage: []byte(`{"input_tokens":3,"output_tokens":4}`), Finish: []byte(`"odd\u0020word"`), ID: []byte(`"id 1"`)}
	want := Reply{Status: 201, RequestID: "id 1", Body: body, Usage: Usage{InputTokens: 3, OutputTokens: 4}, HasUsage: true, Finish: "odd word"}
	if got := found.Reply(201, nil, body); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = Reply{Status: 200, RequestID: "head", Body: body}
	nothing := Found{Usage: []byte(`[]`), Finish: []byte(`null`), ID: []byte(`1`)}
	if got := nothing.Reply(200, http.Header{"X-Request-Id": {"head"}}, body); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Every word for an end that a provider has means one of five things.
func TestEndOf(t *testing.T) {
	for want, words := range map[End][]string{
		"":         {""},
		EndStop:    {"stop", "STOP", "end_turn", "stop_sequence", "COMPLETE", "STOP_SEQUENCE", "completed", "eos"},
		EndLength:  {"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "model_context_window_exceeded"},
		EndTool:    {"tool_calls", "tool_use", "function_call", "TOOL_CALL"},
		EndRefused: {"content_filter", "refusal", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "guardrail_intervened", "content_filtered", "sensitive", "no_content", "content_filter: PROHIBITED_CONTENT"},
		EndOther: {
			"pause_turn", "OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE",
			"NO_IMAGE", "malformed_model_output", "malformed_tool_use", "ERROR", "TIMEOUT", "insufficient_system_resource", "error", "load", "odd", "network_error", "content_filter_error",
		},
	} {
		for _, word := range words {
			if got := EndOf(word); got != want {
				t.Errorf("%q: %q, want %q", word, got, want)
			}
		}
	}
}

// A text is what a string says, escapes undone, and nothing of any other value.
func TestAppendText(t *testing.T) {
	for value, want := range map[string]string{`"a\u00e9\n"`: "xaé\n", `""`: "x", "null": "x", "": "x", `{"a":"b"}`: "x", `"\ud83d"`: "x\uFFFD"} {
		if got := string(rawjson.AppendText([]byte("x"), []byte(value))); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
