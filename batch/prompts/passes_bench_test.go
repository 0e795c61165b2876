package prompts

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/internal/lines"
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
