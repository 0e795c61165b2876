package gemini_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/gemini"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A limit of 0 is no rate that was exceeded, wherever it stands in the prose, and a quota of
// the day is not waited for; a limit that begins with 0 is another one.
func TestQuotasThatEnd(t *testing.T) {
	for body, want := range map[string]provider.Kind{
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"metric: m, limit: 0\nPlease retry in 5s."}}`:           provider.QuotaExhausted,
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"metric: m, limit: 0, model: x\nPlease retry in 5s."}}`: provider.QuotaExhausted,
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"metric: m, limit: 05\nPlease retry in 5s."}}`:          provider.Throttled,
		`{"error":{"code":"quota_exceeded","message":"no more today"}}`:                                                       provider.QuotaExhausted,
	} {
		if _, e := (gemini.Dialect{}).Answer(http.StatusTooManyRequests, nil, []byte(body), nil); e == nil || e.Kind != want {
			t.Errorf("%s: %v, want %v", body, e, want)
		}
	}
}

// A 403 about a file is the item's failure. Every other 403 refuses the key.
func TestForbidden(t *testing.T) {
	for message, want := range map[string]provider.Kind{
		"You do not have permission to access the File 12wu3v2jrhw6 or it may not exist.":     provider.Invalid,
		"The caller does not have permission":                                                 provider.Unauthorized,
		"Your API key was reported as leaked. Please use another API key.":                    provider.Unauthorized,
		"CachedContent not found (or permission denied)":                                      provider.Unauthorized,
		"You do not have permission to access tuned model tunedModels/a or it may not exist.": provider.Unauthorized,
	} {
		body := `{"error":{"code":403,"message":"` + message + `","status":"PERMISSION_DENIED"}}`
		if _, e := (gemini.Dialect{}).Answer(http.StatusForbidden, nil, []byte(body), nil); e == nil || e.Kind != want {
			t.Errorf("%s: %v, want %v", message, e, want)
		}
	}
}

// An answer and a prompt that was blocked have the id in the body, as Google sends no header with one. A refusal by status has none.
func TestRequestIDOfTheBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"responseId":"PxYi"}`: "PxYi",
		`{"promptFeedback":{"blockReason":"SAFETY"},"responseId":"PxYi"}`:                                  "PxYi",
		`{"promptFeedback":{"blockReason":"SAFETY"}}`:                                                      "",
	} {
		reply, e := gemini.Dialect{}.Answer(http.StatusOK, nil, []byte(body), nil)
		if reply.RequestID != want || e != nil && e.RequestID != want {
			t.Errorf("%s: reply %q, error %v, want %q", body, reply.RequestID, e, want)
		}
	}
	if _, e := (gemini.Dialect{}).Answer(http.StatusTooManyRequests, nil, []byte(`{"error":{"code":429},"responseId":"PxYi"}`), nil); e.RequestID != "" {
		t.Errorf("a refusal by status: %q", e.RequestID)
	}
}
