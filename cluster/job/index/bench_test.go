package index

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/headrace/headrace/cluster/job"
)

// BenchmarkIndex: what an input of 20,000 prompts is read through and cut with, a line.
func BenchmarkIndex(b *testing.B) {
	const lines = 20_000
	for name, format := range map[string]string{
		"ids":    "{\"custom_id\":\"item-%09d\",\"prompt\":\"Which rivers does it cross on its way down, and where are they?\"}\n",
		"no ids": "{\"prompt\":\"Which rivers does %09d cross on its way down to the sea, and where are they met?\"}\n",
	} {
		var text bytes.Buffer
		for i := range lines {
			fmt.Fprintf(&text, format, i)
		}
		w := newWorld(b, job.Cut{}, job.Reading{})
		w.input("in", job.JSONL, 0, text.Bytes())
		w.create()
		tries := 0
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(text.Len()) / lines)
			b.ReportAllocs()
			for n := 0; n < b.N; n += lines {
				tries++
				if _, err := w.src.Plan(b.Context(), 1, fmt.Sprint(tries)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
