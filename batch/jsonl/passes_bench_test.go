package jsonl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// benchLines are prompts as they stand in files made by programs: 300 bytes each.
func benchLines(n int) []byte {
	var text bytes.Buffer
	filler := strings.Repeat("which rivers does it cross ", 12)
	for i := range n {
		fmt.Fprintf(&text, `{"model":"bench-1","messages":[{"role":"user","content":"%08d %s"}],"max_tokens":50}`+"\n", i, filler[:209])
	}
	return text.Bytes()
}

// BenchmarkPasses: what a run reads a file of 50,000 prompts with, a line: once to
// check it before any call, once to ask.
func BenchmarkPasses(b *testing.B) {
	const lines = 50_000
	text := benchLines(lines)
	for name, cfg := range map[string]ReaderConfig{
		"survey": {Passing: true, NoKeys: true},
		"resume": {},
		"run":    {Checked: true},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text) / lines))
			b.ReportAllocs()
			r := NewReader(bytes.NewReader(text), cfg)
			for b.Loop() {
				if _, err := r.Next(); atEnd(err) {
					b.StopTimer()
					r = NewReader(bytes.NewReader(text), cfg)
					b.StartTimer()
				} else if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkKey: of a body as programs write it, and of one in canonical form.
func BenchmarkKey(b *testing.B) {
	body := bytes.TrimSpace(benchLines(1))
	for name, body := range map[string][]byte{
		"unsorted":  body,
		"canonical": bytes.Replace([]byte(`{"max_tokens":50,"messages":[{"content":"X","role":"user"}],"model":"bench-1"}`), []byte("X"), body[66:66+217], 1),
	} {
		b.Run(name, func(b *testing.B) {
			var keys canonizer
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				keys.nth(ChatCompletions, body, 0)
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
