package prompts

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/internal/lines"
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
				if items, bad, err := through(NewReader(bytes.NewReader(text.Bytes()), Config{})); items != 1000 {
					b.Fatal(items, bad, err)
				}
			}
		})
	}
}

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
	const items = 50_000
	text := benchLines(items)
	for name, cfg := range map[string]Config{
		"survey": {Passing: true, NoKeys: true},
		"resume": {},
		"run":    {Checked: true},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text) / items))
			b.ReportAllocs()
			r := NewReader(bytes.NewReader(text), cfg)
			for b.Loop() {
				if _, err := r.Next(); lines.AtEnd(err) {
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
