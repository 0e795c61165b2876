package journal

import (
	"strings"
	"testing"
)

// BenchmarkAppendLine: a line as it comes from a provider that indents its answers.
func BenchmarkAppendLine(b *testing.B) {
	l := full()
	words := strings.Repeat("the mill wheel turns as fast as the water lets it ", 20)
	for name, body := range map[string]string{
		"compact":  `{"choices":[{"index":0,"message":{"role":"assistant","content":"` + words + `"}}]}`,
		"indented": "{\n  \"choices\": [\n    {\n      \"index\": 0,\n      \"message\": {\n        \"content\": \"" + words + "\"\n      }\n    }\n  ]\n}",
	} {
		b.Run(name, func(b *testing.B) {
			l.Response.Body = []byte(body)
			dst := AppendLine(nil, &l)
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendLine(dst[:0], &l)
			}
		})
	}
}

// BenchmarkAnswerLine: a line as it comes from a provider that answers on one line,
// whose answer is parsed here or was parsed before.
func BenchmarkAnswerLine(b *testing.B) {
	l := savedLine(1)
	l.Response = &Response{StatusCode: 200, RequestID: "req_1", Body: []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench-1","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("which rivers does it cross ", 8) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":60,"completion_tokens":50,"total_tokens":110}}`)}
	l.Headrace.Lane = "openai/bench-1"
	dst := AppendLine(nil, &l)
	for name, checked := range map[string]bool{"unknown": false, "checked": true} {
		l.Response.Checked = checked
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendLine(dst[:0], &l)
			}
		})
	}
}
