package jsonl

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// BenchmarkReader: megabytes a second through form, id and key.
func BenchmarkReader(b *testing.B) {
	words := strings.Repeat("the mill wheel turns as fast as the water lets it ", 20)
	for name, format := range map[string]string{
		"batch":  `{"custom_id":"item-%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"` + words + `"}]}}`,
		"body":   `{"model":"m","messages":[{"role":"user","content":"` + words + `"}],"metadata":{"n":%d}}`,
		"prompt": `{"id":"%d","prompt":"` + words + `","model":"m","temperature":0.2}`,
	} {
		var text bytes.Buffer
		for i := range 1000 {
			fmt.Fprintf(&text, format+"\n", i)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if sum, bad, err := Check(NewReader(bytes.NewReader(text.Bytes()), ReaderConfig{})); sum.Items != 1000 {
					b.Fatal(sum, bad, err)
				}
			}
		})
	}
}

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

// BenchmarkWriter: the whole way of a line, but for the disk.
func BenchmarkWriter(b *testing.B) {
	l := full()
	w := NewWriter(io.Discard, "none")
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(&l); err != nil {
			b.Fatal(err)
		}
	}
}
