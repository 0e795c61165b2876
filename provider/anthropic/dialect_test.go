package anthropic_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A dialect without a client sends the same version: a lane makes its client of the dialect alone.
func TestHeader(t *testing.T) {
	if got := (anthropic.Dialect{}).Header().Get("Anthropic-Version"); got != "2023-06-01" {
		t.Errorf("got %q", got)
	}
}

// What is not quite a message is read with care.
func TestAnswerIsAMessage(t *testing.T) {
	for body, want := range map[string]provider.Kind{
		`{"type":"message","content":[],"stop_reason":null}`:                     provider.EmptyAnswer,
		`{"type":"error","error":{"type":"overloaded_error","message":"Busy"}}`:  provider.Overloaded,
		`{"type":"message","content":[{"type":"text","text":"a"}]`:               provider.TransportFault,
		`{"type":"completion","completion":"","stop_reason":"","content":[]}`:    provider.EmptyAnswer,
		`{"error":{"code":"insufficient_quota","message":"of a gateway's own"}}`: provider.QuotaExhausted,
	} {
		if _, e := (anthropic.Dialect{}).Answer(http.StatusOK, nil, []byte(body), nil); e == nil || e.Kind != want {
			t.Errorf("%s: %v, want %v", body, e, want)
		}
	}
}

// Only blocks of text are what a message says, and escapes in them are undone.
func TestText(t *testing.T) {
	for body, want := range map[string]string{
		`{"content":[{"type":"text","text":"a"},{"type":"fallback","text":"not this"},{"text":"nor this"},{"type":"text","text":"\u00e9\ud83d"}]}`: "aé\uFFFD",
		`{"content":[{"type":"text","text":7}]}`: "", `{"content":"x"}`: "", `[]`: "", `{"content":{"type":"text","text":"x"}}`: "", "": "",
	} {
		if text, has := (anthropic.Dialect{}).Text([]byte(body)); text != want || has != (want != "") {
			t.Errorf("%s: %q, %v, want %q", body, text, has, want)
		}
	}
}
