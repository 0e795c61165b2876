package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

const secretOfTests = "sk-live-0/1+n_9abcdef"

// A secret is taken out however it is spelled, and nothing else is.
func TestRedact(t *testing.T) {
	every := ""
	for _, c := range []byte(secretOfTests) {
		every += fmt.Sprintf(`\u%04x`, c)
	}
	for _, c := range []struct{ body, want, secret string }{
		{"a sk-live-0/1+n_9abcdef, b sk-live-0/1+n_9abcdefg", "a [redacted], b [redacted]g", ""},
		{`"sk\u002dlive\u002D0\/1+n_9abcdef"`, `"[redacted]"`, ""},
		{`"{\"k\":\"sk\\u002dlive-0\\\/1+n_9abcdef\"}"`, `"{\"k\":\"[redacted]\"}"`, ""},
		{`"` + every + `"`, `"[redacted]"`, ""},
		{`"` + strings.ToUpper(every[2:]) + `"`, `"` + strings.ToUpper(every[2:]) + `"`, ""}, // no escape
		{`"sk\u002elive"`, `"sk\u002elive"`, ""},
		{`"\u00e9\u00"`, `"\u00e9\u00"`, ""},

		// The beginning at the end, as it is and in the middle of an escape.
		{"x sk-live-", "x ", ""},
		{"x sk-live", "x sk-live", "sk-lived-long"},
		{"x sk-live", "x sk-live", "sk-live9999"},
		{`x sk\u002dlive\u002d`, "x ", ""},
		{`x sk\u002dlive-0\u00`, "x ", ""},
		{`x sk-live-0\`, "x ", ""},
		{`x \u0073\u006b\u002d\u006c\u0069\u0076\u0065\u002`, `x \u0073\u006b\u002d\u006c\u0069\u0076\u0065\u002`, ""}, // seven
		{`x sk-live-0\u002`, "x ", ""},
		{"x " + every[:len(every)-1], "x ", ""},
		{"x sk-live-1", "x sk-live-1", ""},

		// What looks like the secret behind a backslash begins with another character.
		{`"\n1234567x"`, `"[redacted]x"`, "n1234567"},
		{`"\\n1234567x"`, `"\\[redacted]x"`, "n1234567"},
		{`"\u006e1234567x"`, `"[redacted]x"`, "n1234567"},

		// A quote and a backslash, which JSON must escape.
		{`{"a":1} {"key":"k-01"}`, `{"a":1} [redacted]`, `{"key":"k-01"}`},
		{`"is {\"key\":\"k-01\"}."`, `"is [redacted]."`, `{"key":"k-01"}`},
		{`"{\"e\":\"{\\\"key\\\":\\\"k-01\\\"}\"}"`, `"{\"e\":\"[redacted]\"}"`, `{"key":"k-01"}`},
		{`"{\u0022key\u0022:\u0022k-01\u0022}"`, `"[redacted]"`, `{"key":"k-01"}`},
		{`"pass\\word-01"`, `"[redacted]"`, `pass\word-01`},
		{`pass\word-01`, `[redacted]`, `pass\word-01`},
		{`"x {\"key\":\"k-`, `"x `, `{"key":"k-01"}`},

		{"seven77", "seven77", "seven77"},                                // too short
		{`{"created":1712345678}`, `{"created":1712345678}`, "12345678"}, // could be a number
		{`[1.5e+12]`, `[1.5e+12]`, "1.5e+1234"},
		{"", "", ""},
	} {
		secret := c.secret
		if secret == "" {
			secret = secretOfTests
		}
		before := strings.Clone(c.body)
		if got := string(Redact([]byte(c.body), secret)); got != c.want {
			t.Errorf("%s without %s is %s, want %s", c.body, secret, got, c.want)
		}
		if got := RedactText(c.body, secret); got != c.want {
			t.Errorf("as a text %s without %s is %s, want %s", c.body, secret, got, c.want)
		}
		if c.body != before {
			t.Errorf("the body was changed: %s", c.body)
		}
	}
}

// What is made of backslashes alone takes no longer than as much of anything else: with
// the square of it this would not end.
func TestRedactOfBackslashes(t *testing.T) {
	body := bytes.Repeat([]byte(`\`), 4<<20)
	body = append(body, `u00`...)
	if got := Redact(body, secretOfTests); !bytes.Equal(got, body) {
		t.Errorf("%d bytes of %d are left", len(got), len(body))
	}
}

// Whatever surrounds it, valid JSON stays valid JSON without the secret in any of its
// strings, however it was escaped.
func FuzzRedactJSON(f *testing.F) {
	f.Add("it is ", ", or so", uint64(0x5555), false)
	f.Add(`\`, `\"`, uint64(0), true)
	f.Add("\n", "é\u2028", ^uint64(0), true)
	f.Add(secretOfTests[:9], secretOfTests, uint64(3), false)
	f.Fuzz(func(t *testing.T, before, after string, escaped uint64, nested bool) {
		text := before + secretOfTests + after
		if nested {
			text = string(asJSON(t, text, escaped))
		}
		body := asJSON(t, text, escaped)
		kept := bytes.Clone(body)
		got := Redact(body, secretOfTests)
		if !bytes.Equal(body, kept) {
			t.Fatal("the body was changed")
		}
		var value string
		if err := json.Unmarshal(got, &value); err != nil {
			t.Fatalf("%s becomes %s: %v", body, got, err)
		}
		if strings.Contains(value, secretOfTests) {
			t.Fatalf("%s becomes %s, and the secret is in it", body, got)
		}
		if nested && json.Unmarshal([]byte(value), &value) == nil && strings.Contains(value, secretOfTests) {
			t.Fatalf("%s becomes %s, and the secret is in what is in it", body, got)
		}
	})
}

// asJSON is a text in JSON, with some of its ASCII letters and signs escaped without need.
func asJSON(t *testing.T, text string, escaped uint64) []byte {
	t.Helper()
	plain := must.Get(json.Marshal(text))(t)
	var out []byte
	for i, c := range plain {
		within := i > 0 && i < len(plain)-1
		afterSlash := bytes.HasSuffix(plain[:i], []byte(`\`)) || bytes.Contains(plain[max(0, i-6):i], []byte(`\u`))
		if within && !afterSlash && c > ' ' && c < 0x7f && c != '\\' && escaped>>(i%64)&1 == 1 {
			out = fmt.Appendf(out, `\u%04x`, c)
			continue
		}
		out = append(out, c)
	}
	return out
}

// A key that a header or a finish reason repeats is in no part of the record, nor in the
// failure that is made of it.
func TestRecordIsWithoutTheKey(t *testing.T) {
	ctx, rec := WithRecorder(t.Context())
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, "http://x.invalid", http.NoBody))(t)
	req.Header.Set("Authorization", "Bearer "+secretOfTests)
	rec.sent(req)
	rec.Response(http.StatusTeapot, http.Header{"X-Request-Id": {"id-" + secretOfTests}})
	rec.Finish("because of " + secretOfTests)
	r := rec.Snapshot()
	if e := r.Failure(errors.New("x")); r.RequestID != "id-[redacted]" || r.Finish != "because of [redacted]" || e.RequestID != r.RequestID {
		t.Errorf("request id %q, finish %q, in the failure %q", r.RequestID, r.Finish, e.RequestID)
	}
}

// Redact costs an ordinary answer little.
func BenchmarkRedactAnswer(b *testing.B) {
	key := "sk-proj-" + strings.Repeat("aB3dE6gH9", 17)
	body := []byte(`{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,"model":"m",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("The three rivers are the Danube, the Inn and the Mur.\\n", 16) +
		`","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":61,"completion_tokens":14,"total_tokens":75}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		Redact(body, key)
	}
}
