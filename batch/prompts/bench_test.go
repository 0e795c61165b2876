package prompts

import (
	"bytes"
	"fmt"
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
				if items, bad, err := through(NewReader(bytes.NewReader(text.Bytes()), Config{})); items != 1000 {
					b.Fatal(items, bad, err)
				}
			}
		})
	}
}
