package provider_test

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"

	"github.com/headrace/headrace/provider"
)

// A segment spells the name, without any character that has a meaning in a path, a host or a query.
func TestSegment(t *testing.T) {
	for model, want := range map[string]string{
		"": "", "gpt-5_mini.x~1": "gpt-5_mini.x~1", "a/b": "a%2Fb", "a b+c": "a%20b%2Bc", ".": "%2E", "..": "%2E%2E", "...": "...",
		"v1:0": "v1%3A0", "%": "%25", "é\x00": "%C3%A9%00",
	} {
		if got := provider.Segment(model); got != want {
			t.Errorf("%q: %q, want %q", model, got, want)
		}
		if back, err := url.PathUnescape(provider.Segment(model)); back != model || err != nil {
			t.Errorf("%q: back %q, %v", model, back, err)
		}
	}
}

// An object is one that is JSON, whatever white space of JSON's stands around it.
func TestObjectIn(t *testing.T) {
	for body, want := range map[string]string{
		" {\"a\":1}\n": `{"a":1}`, `{}`: `{}`, `[{}]`: "", `{"a":1`: "", `{"a":1}x`: "", "": "", `"x"`: "", "\u00a0{}": "",
	} {
		if got := string(provider.ObjectIn([]byte(body))); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

// What was found makes a reply; a header's id goes before the body's.
func TestFoundReply(t *testing.T) {
	body := []byte(`{}`)
	found := provider.Found{Usage: []byte(`{"input_tokens":3,"output_tokens":4}`), Finish: []byte(`"odd\u0020word"`), ID: []byte(`"id 1"`)}
	want := provider.Reply{Status: 201, RequestID: "id 1", Body: body, Usage: provider.Usage{InputTokens: 3, OutputTokens: 4}, HasUsage: true, Finish: "odd word"}
	if got := found.Reply(201, nil, body); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = provider.Reply{Status: 200, RequestID: "head", Body: body}
	nothing := provider.Found{Usage: []byte(`[]`), Finish: []byte(`null`), ID: []byte(`1`)}
	if got := nothing.Reply(200, http.Header{"X-Request-Id": {"head"}}, body); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
